# status: WRONG
# words: should be [768.0, 896.0; hint 1
# exercise 11.2: which roof
def step(rows, columns, depth):
    # your code: roughly 8 lines
    return 0, 0, "both"

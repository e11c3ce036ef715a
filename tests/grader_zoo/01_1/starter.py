# status: WRONG
# words: still hold what C held before
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    # your code: roughly 7 lines
    pass

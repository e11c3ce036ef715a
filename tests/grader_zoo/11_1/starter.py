# status: WRONG
# words: should be [147456, 128; hint 1
# exercise 11.1: the budget
def budget(block_m, block_n, block_k, warps, stages):
    # your code: roughly 5 lines
    return 0, 0, True

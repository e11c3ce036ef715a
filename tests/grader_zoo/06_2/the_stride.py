# status: WRONG
# words: (3, 4) is 3, should be 1; Try 3 by hand
# exercise 06.2: how many ways
def wavefronts(stride, size):
    return min(max(stride, 1), 32)

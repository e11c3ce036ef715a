# status: WRONG
# words: (16, 4) is 2, should be 16
# exercise 06.2: how many ways
def wavefronts(stride, size):
    if size == 8:
        return 2 * (2 if stride % 2 == 0 else 1) if stride else 1
    return 2 if stride % 2 == 0 else 1

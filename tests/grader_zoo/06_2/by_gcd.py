# status: WRONG
# words: should be 32
# exercise 06.2: how many ways
def wavefronts(stride, size):
    if stride == 0:
        return 1
    return math.gcd(stride, 32) * size // 4

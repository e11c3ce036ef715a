# status: WRONG
# words: fill two banks each
# exercise 06.2: how many ways
def wavefronts(stride, size):
    return math.gcd(stride, 32) if stride else 1

# status: WRONG
# words: fill two banks each; should be 2
# exercise 06.2: how many ways
def wavefronts(stride, size):
    return math.gcd(stride, 128 // size) if stride else 1

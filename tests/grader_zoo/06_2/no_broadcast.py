# status: WRONG
# words: (0, 4) is 32, should be 1; delivered once
# exercise 06.2: how many ways
def wavefronts(stride, size):
    parts = size // 4
    return parts * math.gcd(stride, 32 // parts)

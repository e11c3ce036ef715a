# status: WRONG
# words: one too few
# exercise 06.2: how many ways
def wavefronts(stride, size):
    if stride == 0:
        return 0
    parts = size // 4
    return parts * math.gcd(stride, 32 // parts) - 1

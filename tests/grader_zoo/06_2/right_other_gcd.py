# status: PASS
# words:
# exercise 06.2: how many ways
def wavefronts(stride, size):
    if stride == 0:
        return 1
    return math.gcd(stride * (size // 4), 32)

# status: PASS
# words:
# exercise 06.2: how many ways
import math


def wavefronts(stride, size):
    if stride == 0:
        return 1
    parts = size // 4
    return parts * math.gcd(stride, 32 // parts)

# status: WRONG
# words: the two halves of a warp go together
# exercise 06.2: how many ways
def wavefronts(stride, size):
    parts = size // 4
    return parts * math.gcd(stride, 32 // parts) if stride else parts

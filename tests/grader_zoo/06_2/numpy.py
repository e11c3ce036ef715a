# status: FORBIDDEN
# words: needs no such thing; np.gcd
# exercise 06.2: how many ways
def wavefronts(stride, size):
    return np.gcd(stride, 32)

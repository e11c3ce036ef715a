# status: WRONG
# words: (1, 4) is 32; How many words
# exercise 06.2: how many ways
def wavefronts(stride, size):
    return 32 // math.gcd(stride, 32)

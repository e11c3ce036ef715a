# status: WRONG
# words: Does it end with a `return`
# exercise 06.2: how many ways
def wavefronts(stride, size):
    print(math.gcd(stride, 32))

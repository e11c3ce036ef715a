# status: WRONG
# words: should be
# exercise 11.3: tune to a ratio
def choose(m, n):
    return (512, 512, 64, 8, 3)

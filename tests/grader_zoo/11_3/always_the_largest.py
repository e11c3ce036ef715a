# status: WRONG
# words: large C; count the waves
# exercise 11.3: tune to a ratio
def choose(m, n):
    return SETTINGS[0]

# status: WRONG
# words: choose(1024, 1024) is
# exercise 11.3: tune to a ratio
def choose(m, n):
    best = SETTINGS[-1]
    for setting in SETTINGS:
        if m // setting[0] * (n // setting[1]) >= SMS:
            return setting
    return best

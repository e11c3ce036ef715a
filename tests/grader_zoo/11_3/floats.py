# status: WRONG
# words: five whole numbers
# exercise 11.3: tune to a ratio
def choose(m, n):
    return [x + 0.0 for x in SETTINGS[0]]

# status: WRONG
# words: Does it end with a 
# exercise 11.3: tune to a ratio
def choose(m, n):
    best = SETTINGS[0]
    for setting in SETTINGS:
        if setting[0] * setting[1] < best[0] * best[1]:
            best = setting

# status: WRONG
# words: should be [128, 256, 64, 8, 3]
# exercise 11.3: tune to a ratio
def choose(m, n):
    best, most = 0, 0.0
    for i in range(len(SETTINGS)):
        rows, columns = SETTINGS[i][0], SETTINGS[i][1]
        if rows * columns > most:
            best, most = i, rows * columns
    return best

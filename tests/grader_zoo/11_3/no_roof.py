# status: WRONG
# words: waits for shared memory
# exercise 11.3: tune to a ratio
def choose(m, n):
    best, most = SETTINGS[0], 0.0
    for setting in SETTINGS:
        rows, columns = setting[0], setting[1]
        waves = -(-(-(-m // rows) * -(-n // columns)) // SMS)
        busy = m * n / (waves * SMS * rows * columns)
        if busy > most:
            best, most = setting, busy
    return best

# status: WRONG
# words: slowest
# exercise 11.3: tune to a ratio
def choose(m, n):
    best, least = SETTINGS[0], 2.0
    for setting in SETTINGS:
        rows, columns = setting[0], setting[1]
        waves = -(-(-(-m // rows) * -(-n // columns)) // SMS)
        busy = m * n / (waves * SMS * rows * columns)
        moved = 2 * rows + columns + rows // WGMMA_ROWS * columns
        share = busy * min(1, 2 * rows * columns / FLOPS / (moved * BYTES / BANDWIDTH))
        if share < least:
            best, least = setting, share
    return best

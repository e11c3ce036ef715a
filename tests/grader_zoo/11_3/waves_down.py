# status: WRONG
# words: counted upwards along both axes; hint 3
# exercise 11.3: tune to a ratio
def choose(m, n):
    best, most = SETTINGS[0], 0.0
    for setting in SETTINGS:
        rows, columns = setting[0], setting[1]
        waves = max(1, -(-m // rows) * -(-n // columns) // SMS)
        busy = m * n / (waves * SMS * rows * columns)
        moved = 2 * rows + columns + rows // WGMMA_ROWS * columns
        roof = min(1, 2 * rows * columns / FLOPS / (moved * BYTES / BANDWIDTH))
        share = busy * roof
        if share > most:
            best, most = setting, share
    return best

# status: WRONG
# words: stick out
# exercise 11.3: tune to a ratio
def choose(m, n):
    best, most = SETTINGS[0], 0.0
    for setting in SETTINGS:
        rows, columns = setting[0], setting[1]
        tiles = -(-m // rows) * -(-n // columns)
        busy = tiles / (-(-tiles // SMS) * SMS)
        moved = 2 * rows + columns + rows // WGMMA_ROWS * columns
        share = busy * min(1, 2 * rows * columns / FLOPS / (moved * BYTES / BANDWIDTH))
        if share > most:
            best, most = setting, share
    return best

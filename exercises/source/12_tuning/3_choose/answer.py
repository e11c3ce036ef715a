def choose(m, n):
    best, most = SETTINGS[0], 0.0
    for setting in SETTINGS:
        rows, columns = setting[0], setting[1]
        waves = -(-(-(-m // rows) * -(-n // columns)) // SMS)
        busy = m * n / (waves * SMS * rows * columns)
        arithmetic = 2 * rows * columns / FLOPS
        moved = 2 * rows + columns + rows // WGMMA_ROWS * columns
        share = busy * min(1, arithmetic / (moved * BYTES / BANDWIDTH))
        if share > most:
            best, most = setting, share
    return best

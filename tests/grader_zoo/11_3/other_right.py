# status: PASS
# words: 
# exercise 11.3: tune to a ratio
def busy(m, n, rows, columns):
    tiles = ((m + rows - 1) // rows) * ((n + columns - 1) // columns)
    waves = (tiles + SMS - 1) // SMS
    return m * n / (waves * SMS * rows * columns)


def roof(rows, columns):
    depth = 64
    arithmetic = 2 * rows * columns * depth / FLOPS
    written = (rows + columns) * depth * BYTES
    read = (rows * depth + rows // WGMMA_ROWS * columns * depth) * BYTES
    return min(1.0, arithmetic / ((written + read) / BANDWIDTH))


def choose(m, n):
    shares = [busy(m, n, s[0], s[1]) * roof(s[0], s[1]) for s in SETTINGS]
    best = max(shares)
    for setting, share in zip(SETTINGS, shares):
        if share == best:
            return setting

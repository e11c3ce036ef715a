# status: PASS
# words:
# exercise 11.3: tune to a ratio
def choose(m, n):
    shares = []
    cover = lambda size, part: (size + part - 1) // part
    for rows, columns, depth, warps, stages in SETTINGS:
        waves = cover(cover(m, rows) * cover(n, columns), SMS)
        moved = 2 * rows + columns + rows // WGMMA_ROWS * columns
        roof = 2 * rows * columns / FLOPS / (moved * BYTES / BANDWIDTH)
        shares.append(m * n / (waves * SMS * rows * columns) * min(1, roof))
    return SETTINGS[shares.index(max(shares))]

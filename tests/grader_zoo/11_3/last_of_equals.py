# status: PASS
# words: 
# exercise 11.3: tune to a ratio
def choose(m, n):
    best, most = None, -1
    for rows, columns, depth, warps, stages in SETTINGS:
        waves = math.ceil(math.ceil(m / rows) * math.ceil(n / columns) / SMS)
        clocks = max(2 * rows * columns / FLOPS, (2 * rows + columns + rows // WGMMA_ROWS * columns) * BYTES / BANDWIDTH)
        speed = 1 / (waves * clocks)
        if speed >= most * (1 - 1e-12):
            best, most = (rows, columns, depth, warps, stages), speed
    return best

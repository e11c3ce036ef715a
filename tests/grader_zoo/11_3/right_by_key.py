# status: PASS
# words:
# exercise 11.3: tune to a ratio
def share(setting, m, n):
    rows, columns = setting[:2]
    waves = -(-(-(-m // rows) * -(-n // columns)) // SMS)
    moved = 2 * rows + columns + rows // WGMMA_ROWS * columns
    roof = 2 * rows * columns / FLOPS / (moved * BYTES / BANDWIDTH)
    return m * n / (waves * SMS * rows * columns) * min(1, roof)

def choose(m, n):
    return max(SETTINGS, key=lambda setting: share(setting, m, n))

def global_loads(m, n, k, rows, columns):
    across = -(-n // columns)  # tiles side by side: so often A is loaded
    down = -(-m // rows)  # tiles below each other: so often B is
    return k * (m * across + n * down)

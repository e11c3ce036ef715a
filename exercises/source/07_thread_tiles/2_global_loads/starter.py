def global_loads(m, n, k, rows, columns):
    # your code: roughly 3 lines
    return 2 * m * n * k

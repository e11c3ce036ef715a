def moved(m, n, k, steps, each):
    # your code: roughly 8 lines
    return 0, 0

def gradients(a, b, g):
    # your code: roughly 5 lines
    return [[[0 for _ in row] for row in a], [[0 for _ in row] for row in b]]

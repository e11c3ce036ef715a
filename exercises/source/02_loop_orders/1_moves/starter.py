def moves(order, m, n, k):
    # your code: roughly 6 lines
    return 0, 0, 0

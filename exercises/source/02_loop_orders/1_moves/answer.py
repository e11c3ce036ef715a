def moves(order, m, n, k):
    inner = order[-1]
    if inner == "i":
        return k, 0, n
    if inner == "j":
        return 0, 1, 1
    return 1, n, 0

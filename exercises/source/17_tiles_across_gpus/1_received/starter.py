def received(cut, m, n, k, p):
    # your code: roughly 10 lines
    return 0

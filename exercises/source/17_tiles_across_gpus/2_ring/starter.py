def ring(rank, p):
    # your code: roughly 8 lines
    return []

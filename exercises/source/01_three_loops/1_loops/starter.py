def loops(a, b, c):
    # your code: roughly 7 lines
    pass

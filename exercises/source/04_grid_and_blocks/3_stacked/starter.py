@cuda.jit
def stacked(a, b, c):
    # your code: roughly 8 lines
    pass

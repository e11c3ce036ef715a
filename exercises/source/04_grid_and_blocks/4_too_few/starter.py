@cuda.jit
def strided(a, b, c):
    # your code: roughly 10 lines
    pass

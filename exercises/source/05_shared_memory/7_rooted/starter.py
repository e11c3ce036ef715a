@cuda.jit
def rooted(a, c):
    # your code: roughly 15 lines
    pass

@cuda.jit
def puzzle(a, b, c):
    # your code: roughly 14 lines
    pass

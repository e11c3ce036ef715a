@cuda.jit
def plus_transpose(a, c):
    tile = cuda.shared.array((EDGE, EDGE), a.dtype)
    # your code: roughly 20 lines

@cuda.jit
def cosines(a, b, c):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    # your code: roughly 40 lines

# status: WRONG
# words: more from global memory than the tiles hold
# exercise 07.1: a tile of 2×2 for each thread
@cuda.jit
def register_tile(a, b, c):
    row = cuda.blockIdx.y * TILE + 2 * cuda.threadIdx.y
    col = cuda.blockIdx.x * TILE + 2 * cuda.threadIdx.x
    for i in range(row, min(row + 2, c.shape[0])):
        for j in range(col, min(col + 2, c.shape[1])):
            acc = c.dtype.type(0)
            for k in range(a.shape[1]):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc

# status: WRONG
# words: with BLOCK = (4, 2); Blocks have 4 × 2 threads in this launch; read cuda.blockDim; hint 1
# exercise 04.1: the guard
@cuda.jit
def guarded(a, b, c):
    row = cuda.blockIdx.y * 4 + cuda.threadIdx.y
    col = cuda.blockIdx.x * 8 + cuda.threadIdx.x
    if row < c.shape[0] and col < c.shape[1]:
        acc = c.dtype.type(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc

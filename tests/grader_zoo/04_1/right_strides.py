# status: PASS
# words:
# exercise 04.1: the guard
@cuda.jit
def guarded(a, b, c):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    for i in range(row, c.shape[0], cuda.blockDim.y * cuda.gridDim.y):
        for j in range(col, c.shape[1], cuda.blockDim.x * cuda.gridDim.x):
            acc = c.dtype.type(0)
            for k in range(a.shape[1]):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc

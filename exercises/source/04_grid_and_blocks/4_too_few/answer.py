@cuda.jit
def strided(a, b, c):
    top = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    left = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    down = cuda.gridDim.y * cuda.blockDim.y
    across = cuda.gridDim.x * cuda.blockDim.x
    for row in range(top, c.shape[0], down):
        for col in range(left, c.shape[1], across):
            acc = c.dtype.type(0)
            for k in range(a.shape[1]):
                acc += a[row, k] * b[k, col]
            c[row, col] = acc

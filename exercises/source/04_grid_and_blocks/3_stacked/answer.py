@cuda.jit
def stacked(a, b, c):
    layer = cuda.blockIdx.z * cuda.blockDim.z + cuda.threadIdx.z
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if layer < c.shape[0] and row < c.shape[1] and col < c.shape[2]:
        acc = c.dtype.type(0)
        for k in range(a.shape[2]):
            acc += a[layer, row, k] * b[layer, k, col]
        c[layer, row, col] = acc

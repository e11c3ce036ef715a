# status: WRONG
# words: the stores of C are not
# exercise 04.2: x or y
@cuda.jit
def in_rows(a, b, c):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    kept = cuda.shared.array((16, 16), c.dtype)
    acc = c.dtype.type(0)
    if row < c.shape[0] and col < c.shape[1]:
        acc = a[row, 0] * b[0, col]
        for k in range(1, a.shape[1]):
            acc += a[row, k] * b[k, col]
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    kept[y, x] = acc
    cuda.syncthreads()
    i, j = row - y + x, col - x + y
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = kept[x, y]

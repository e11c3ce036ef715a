@cuda.jit
def in_rows(a, b, c):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    m, n = c.shape
    if row >= m or col >= n:
        return
    total, k = np.float32(0), a.shape[1]
    while k > 0:
        k -= 1
        left, right = a[row, k], b[k, col]
        total += left * right
    c[row, col] = total

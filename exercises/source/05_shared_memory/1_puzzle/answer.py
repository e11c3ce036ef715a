@cuda.jit
def puzzle(a, b, c):
    a_shared = cuda.shared.array((TPB, TPB), a.dtype)
    b_shared = cuda.shared.array((TPB, TPB), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TPB + y
    col = cuda.blockIdx.x * TPB + x
    acc = c.dtype.type(0)
    for start in range(0, a.shape[1], TPB):
        a_shared[y, x] = a[row, start + x]
        b_shared[y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(TPB):
            acc += a_shared[y, k] * b_shared[k, x]
        cuda.syncthreads()
    c[row, col] = acc

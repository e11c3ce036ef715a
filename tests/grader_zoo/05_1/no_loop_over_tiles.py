# status: WRONG
# words: the loop along K is missing; hint 1
# exercise 05.1: the 9×9 puzzle
@cuda.jit
def puzzle(a, b, c):
    a_shared = cuda.shared.array((TPB, TPB), a.dtype)
    b_shared = cuda.shared.array((TPB, TPB), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TPB + y
    col = cuda.blockIdx.x * TPB + x
    acc = c.dtype.type(0)
    a_shared[y, x] = a[row, col]
    b_shared[y, x] = b[row, col]
    cuda.syncthreads()
    for k in range(TPB):
        acc += a_shared[y, k] * b_shared[k, x]
    c[row, col] = acc

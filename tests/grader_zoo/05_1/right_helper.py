# status: PASS
# words:
# exercise 05.1: the 9×9 puzzle
from numba import cuda


@cuda.jit(device=True)
def product(s, t, y, x):
    acc = 0.0
    for k in range(TPB):
        acc += s[y, k] * t[k, x]
    return acc


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
        acc += product(a_shared, b_shared, y, x)
        cuda.syncthreads()
    c[row, col] = acc

# status: RACE
# words: stands beyond the end of c; hint 2
# exercise 04.1: the guard
@cuda.jit
def guarded(a, b, c):
    row = min(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y, c.shape[0] - 1)
    col = min(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x, c.shape[1] - 1)
    acc = c.dtype.type(0)
    for k in range(a.shape[1]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc

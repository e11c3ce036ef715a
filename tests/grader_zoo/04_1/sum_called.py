# status: FORBIDDEN
# words: write the loop over k; hint 3
# exercise 04.1: the guard
@cuda.jit
def guarded(a, b, c):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if row < c.shape[0] and col < c.shape[1]:
        acc = sum(a[row, k] * b[k, col] for k in range(a.shape[1]))
        c[row, col] = acc

# status: WRONG
# words: Keep the sum in a variable; global loads
# exercise 04.1: the guard
@cuda.jit
def guarded(a, b, c):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = 0
        for k in range(a.shape[1]):
            c[row, col] += a[row, k] * b[k, col]

# status: WRONG
# words: thread (x 2, y 0) of block (x 1, y 0) reads b[0, 10] in line 9 (`acc += a[row, k] * b[k, col]`); Guard the access; hint 2
# exercise 04.1: the guard
@cuda.jit
def guarded(a, b, c):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if True:
        acc = c.dtype.type(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc

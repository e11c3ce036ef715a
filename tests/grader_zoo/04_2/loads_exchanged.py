# status: WRONG
# words: C is the transpose of A·B
# exercise 04.2: x or y
@cuda.jit
def in_rows(a, b, c):
    # your code: roughly 2 lines
    row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    col = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row < c.shape[0] and col < c.shape[1]:
        acc = a[col, 0] * b[0, row]
        for k in range(1, a.shape[1]):
            acc += a[col, k] * b[k, row]
        c[row, col] = acc

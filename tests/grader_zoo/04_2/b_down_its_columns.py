# status: WRONG
# words: reads b[8, 0]; the two indices swapped; b has K rows and N columns, b[k, col]; hint 2
# exercise 04.2: x or y
@cuda.jit
def in_rows(a, b, c):
    # your code: roughly 2 lines
    row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    col = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row < c.shape[0] and col < c.shape[1]:
        acc = a[row, 0] * b[col, 0]
        for k in range(1, a.shape[1]):
            acc += a[row, k] * b[col, k]
        c[row, col] = acc

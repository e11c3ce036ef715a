# status: WRONG
# words: have to share what they load
# exercise 06.1: a tile stored down its columns
@cuda.jit
def transposed(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        acc = c.dtype.type(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc

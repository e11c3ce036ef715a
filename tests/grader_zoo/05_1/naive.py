# status: WRONG
# words: by the long way; of 4
# exercise 05.1: the 9×9 puzzle
@cuda.jit
def puzzle(a, b, c):
    col, row = cuda.grid(2)
    acc = c.dtype.type(0)
    for k in range(a.shape[1]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc

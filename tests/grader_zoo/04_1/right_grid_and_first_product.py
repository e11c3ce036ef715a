# status: PASS
# words:
# exercise 04.1: the guard
@cuda.jit
def guarded(a, b, c):
    col, row = cuda.grid(2)
    m, n = c.shape
    if row < m and col < n:
        acc = a[row, 0] * b[0, col]
        for k in range(1, a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc

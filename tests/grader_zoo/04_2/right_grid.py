# status: PASS
# words:
# exercise 04.2: x or y
@cuda.jit
def in_rows(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        acc = a[row, 0] * b[0, col]
        for k in range(1, a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc

# status: PASS
# words:
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    """Rows of A, columns of B."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            acc = a.dtype.type(0)
            for k in range(a.shape[1]):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc

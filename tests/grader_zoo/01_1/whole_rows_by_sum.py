# status: WRONG
# words: one of the three loops is NumPy's
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = sum(a[i, :] * b[:, j])

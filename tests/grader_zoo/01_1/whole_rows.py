# status: WRONG
# words: one of the three loops is NumPy's; points so far
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    for i in range(a.shape[0]):
        c[i] = 0
        for k in range(a.shape[1]):
            c[i] += a[i, k] * b[k]

# status: WRONG
# words: accesses C[3, 0], and C is 3×6
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[j, i] = 0
            for k in range(a.shape[1]):
                c[j, i] += a[i, k] * b[k, j]

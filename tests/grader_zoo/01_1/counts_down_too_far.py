# status: WRONG
# words: accesses A[0, -1]; counts a negative index from the end
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k - 1] * b[k - 1, j]

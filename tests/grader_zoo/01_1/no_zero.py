# status: WRONG
# words: Line 8 (`c[i, j] += a[i, k] * b[k, j]`) reads C[0, 0] before anything was written there; start from zero; hint 2
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    for i in range(M):
        for j in range(N):
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]

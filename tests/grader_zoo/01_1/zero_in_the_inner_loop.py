# status: WRONG
# words: Only the last product; hint 3
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    for i in range(M):
        for j in range(N):
            for k in range(K):
                c[i, j] = 0
                c[i, j] += a[i, k] * b[k, j]

# status: WRONG
# words: C is right, and not by tiles; hint 1; points so far
# exercise 03.1: Loops 4 with the right indices
def loops_4(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    c[:] = 0
    for i in range(M):
        for j in range(N):
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]

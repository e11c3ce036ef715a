def loops(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    for i in range(M):
        for j in range(N):
            c[i, j] = 0
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]

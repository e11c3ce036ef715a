def streamed(a, b, c):
    K, M = a.shape
    N = b.shape[1]
    # your code: roughly 6 lines
    for i in range(M):
        for j in range(N):
            c[i, j] = 0
            for k in range(K):
                c[i, j] += a[k, i] * b[k, j]

def streamed(a, b, c):
    K, M = a.shape
    N = b.shape[1]
    c[:] = 0
    for k in range(K):
        for i in range(M):
            x = a[k, i]
            for j in range(N):
                c[i, j] += x * b[k, j]

def half(a, c):
    M, K = a.shape
    for i in range(M):
        for j in range(i + 1):
            acc = 0.0
            for k in range(K):
                acc += a[i, k] * a[j, k]
            c[i, j] = acc
            c[j, i] = acc

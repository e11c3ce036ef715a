def loops_4(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    c[:] = 0
    for i in range(0, M, T):
        for j in range(0, N, T):
            for k in range(0, K, T):
                for i0 in range(min(T, M - i)):
                    for j0 in range(min(T, N - j)):
                        for k0 in range(min(T, K - k)):
                            c[i + i0, j + j0] += a[i + i0, k + k0] * b[k + k0, j + j0]

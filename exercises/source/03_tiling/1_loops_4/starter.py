def loops_4(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    c[:] = 0
    # your code: roughly 7 lines
    for i in range(M, T):
        for j in range(N, T):
            for k in range(K, T):
                for i0 in range(T):
                    for j0 in range(T):
                        for k0 in range(T):
                            c[i, j] += a[i, k + k0] * b[k + k0, j]

def snake(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    c[:] = 0
    columns, steps = range(0, N, T), range(0, K, T)
    for i in range(0, M, T):
        for j in columns:
            for k in steps:
                for i0 in range(i, min(i + T, M)):
                    for k0 in range(k, min(k + T, K)):
                        x = a[i0, k0]
                        for j0 in range(j, min(j + T, N)):
                            c[i0, j0] += x * b[k0, j0]
            steps = steps[::-1]
        columns = columns[::-1]

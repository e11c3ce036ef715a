# status: PASS
# words:
# exercise 03.1: Loops 4 with the right indices
def loops_4(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    c[:] = 0
    for k0 in range(0, K, T):
        for j0 in range(0, N, T):
            for i0 in range(0, M, T):
                for i in range(i0, min(i0 + T, M)):
                    for j in range(j0, min(j0 + T, N)):
                        acc = c[i, j]
                        for k in range(k0, min(k0 + T, K)):
                            acc += a[i, k] * b[k, j]
                        c[i, j] = acc

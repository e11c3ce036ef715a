# status: WRONG
# words: C is right, and not by tiles; hint 1
# exercise 03.1: Loops 4 with the right indices
def loops_4(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    c[:] = 0
    for i in range(0, M, T):
        for i0 in range(min(T, M - i)):
            for j in range(0, N, T):
                for j0 in range(min(T, N - j)):
                    for k in range(0, K, T):
                        for k0 in range(min(T, K - k)):
                            c[i + i0, j + j0] += a[i + i0, k + k0] * b[k + k0, j + j0]

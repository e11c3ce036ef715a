# status: WRONG
# words: The sum over k stops at 4 of 5; hint 3
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    for i in range(M):
        for j in range(N):
            c[i, j] = 0
            for k in range(K - 1):
                c[i, j] += a[i, k] * b[k, j]

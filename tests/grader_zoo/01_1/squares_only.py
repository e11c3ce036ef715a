# status: WRONG
# words: as if the matrices were squares; hint 1
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    N = len(a)
    for i in range(N):
        for j in range(N):
            c[i, j] = 0
            for k in range(N):
                c[i, j] += a[i, k] * b[k, j]

# status: WRONG
# words: A 10×9 times B 9×11
# exercise 03.1: Loops 4 with the right indices
def loops_4(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    c[:] = 0
    for i in range(8):
        for j in range(12):
            for k in range(8):
                c[i, j] += a[i, k] * b[k, j]

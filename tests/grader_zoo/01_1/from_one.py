# status: WRONG
# words: The sum over k starts at 1 instead of 0
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0
            for k in range(1, a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]

# status: WRONG
# words: the sum of the one before it as well; once a row
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    for i in range(a.shape[0]):
        acc = 0
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc

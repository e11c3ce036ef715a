# status: WRONG
# words: accesses B[5, 0]; hint 1 ;B has K rows and N columns
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[j, k]

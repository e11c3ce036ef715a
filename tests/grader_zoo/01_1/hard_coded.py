# status: WRONG
# words: accesses C[3, 0], and C is 3×6; hint 1
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    for i in range(4):
        for j in range(6):
            c[i, j] = 0
            for k in range(5):
                c[i, j] += a[i, k] * b[k, j]

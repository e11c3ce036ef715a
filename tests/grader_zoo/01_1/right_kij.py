# status: PASS
# words:
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    c[:] = 0
    for k in range(len(b)):
        for i in range(len(a)):
            for j in range(len(b[0])):
                c[i][j] += a[i][k] * b[k][j]

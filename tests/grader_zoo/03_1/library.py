# status: FORBIDDEN
# words: may not be the library's product
# exercise 03.1: Loops 4 with the right indices
def loops_4(a, b, c):
    c[:] = 0
    for i in range(0, len(a), T):
        for j in range(0, len(b[0]), T):
            c[i : i + T, j : j + T] = a[i : i + T] @ b[:, j : j + T]

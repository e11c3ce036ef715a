# status: FORBIDDEN
# words: where it is multiplied
# exercise 03.1: Loops 4 with the right indices
def loops_4(a, b, c):
    x = ()
    y = ()
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            x += (a[i, k],)
    for k in range(b.shape[0]):
        for j in range(b.shape[1]):
            y += (b[k, j],)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            s = 0
            for k in range(a.shape[1]):
                s += x[i * a.shape[1] + k] * y[k * b.shape[1] + j]
            c[i, j] = s

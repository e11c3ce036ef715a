# status: PASS
# words:
# exercise 01.1: three loops for any sizes
def dot(a, b, i, j):
    return sum(a[i, k] * b[k, j] for k in range(a.shape[1]))


def loops(a, b, c):
    i = 0
    while i < a.shape[0]:
        for j in range(b.shape[1]):
            c[i, j] = dot(a, b, i, j)
        i += 1

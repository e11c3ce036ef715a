# status: FORBIDDEN
# words: nothing has to be atomic
# exercise 05.1: the 9×9 puzzle
@cuda.jit
def puzzle(a, b, c):
    j, i = cuda.grid(2)
    s = c.dtype.type(0)
    for k in range(a.shape[1]):
        s += cuda.atomic.add(a, (i, k), 0) * cuda.atomic.add(b, (k, j), 0)
    c[i, j] = s

# status: RACE
# words: blocks run in any order; Two threads have the same element of c; hint 1
# exercise 04.1: the guard
@cuda.jit
def guarded(a, b, c):
    row = cuda.threadIdx.y
    col = cuda.threadIdx.x
    if row < c.shape[0] and col < c.shape[1]:
        acc = c.dtype.type(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc

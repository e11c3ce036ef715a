# status: WRONG
# words: is wrong in
# exercise 05.1: the 9×9 puzzle
@cuda.jit
def puzzle(a, b, c):
    col, row = cuda.grid(2)
    acc = c.dtype.type(0)
    for k in range(9):
        acc += (9 * row + k) * 2 * (9 * k + col)
    c[row, col] = acc

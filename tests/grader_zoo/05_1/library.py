# status: FORBIDDEN
# words: may not call the library's product; a @ b; line 4
# exercise 05.1: the 9×9 puzzle
@cuda.jit
def puzzle(a, b, c):
    c[:] = a @ b

# status: FORBIDDEN
# words: may not be the library's product; `a @ b` in line 3
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    c[:] = a @ b

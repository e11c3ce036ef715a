# status: FORBIDDEN
# words: the library's product
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    c[:] = a.dot(b)

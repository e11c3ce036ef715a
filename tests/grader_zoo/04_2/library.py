# status: FORBIDDEN
# words: may not call the library's product
# exercise 04.2: x or y
@cuda.jit
def in_rows(a, b, c):
    c[0, 0] = np.dot(a[0], b[0])

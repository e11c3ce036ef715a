# status: FORBIDDEN
# words: may not call the library's product
# exercise 05.4: the integer kernel
@cuda.jit
def integer_tiles(a, b, c):
    c[0, 0] = np.dot(a, b)

# status: FORBIDDEN
# words: may not call the library's product; np.dot
# exercise 05.2: tiles that do not divide
@cuda.jit
def ragged(a, b, c):
    c[0, 0] = np.dot(a, b)

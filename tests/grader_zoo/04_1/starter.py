# status: WRONG
# words: still hold what C held; hint 1
# exercise 04.1: the guard
@cuda.jit
def guarded(a, b, c):
    # your code: roughly 7 lines
    pass

# status: WRONG
# words: hold what C held before
# exercise 05.1: the 9×9 puzzle
@cuda.jit
def puzzle(a, b, c):
    # your code: roughly 14 lines
    pass

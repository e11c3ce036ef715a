# status: WRONG
# words: Line 2 is not Python
# exercise 01.1: three loops for any sizes
def loops(a, b, c)
    pass

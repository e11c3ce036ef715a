# status: TIMEOUT
# words: Which loop never ends
# exercise 01.1: three loops for any sizes
def loops(a, b, c):
    k = 0
    while k < a.shape[1]:
        c[0, 0] = 0

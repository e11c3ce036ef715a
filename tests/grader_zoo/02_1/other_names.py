# status: WRONG
# words: KeyError (line 3:
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return {"m": (k, 0, n), "n": (0, 1, 1), "p": (1, n, 0)}[order[2]]

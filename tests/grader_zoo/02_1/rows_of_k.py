# status: WRONG
# words: How long is a row of A, of B, of C
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return {"i": (k, 0, k), "j": (0, 1, 1), "k": (1, k, 0)}[order[2]]

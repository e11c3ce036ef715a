# status: WRONG
# words: a row of A has k elements
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return {"i": (n, 0, n), "j": (0, 1, 1), "k": (1, n, 0)}[order[2]]

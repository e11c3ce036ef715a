# status: WRONG
# words: These are bytes
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return {"i": (4 * k, 0, 4 * n), "j": (0, 4, 4), "k": (4, 4 * n, 0)}[order[2]]

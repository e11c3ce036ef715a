# status: PASS
# words:
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    table = {"i": (k, 0, n), "j": (0, 1, 1), "k": (1, n, 0)}
    return table[order[2]]

# status: WRONG
# words: moves('ijk'
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return {"i": (3, 0, 7), "j": (0, 1, 1), "k": (1, 7, 0)}[order[2]]

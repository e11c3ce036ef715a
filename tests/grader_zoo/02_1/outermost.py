# status: WRONG
# words: strides of the outermost loop; hint 1
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return {"i": (k, 0, n), "j": (0, 1, 1), "k": (1, n, 0)}[order[0]]

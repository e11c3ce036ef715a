# status: WRONG
# words: in another order; hint 3
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return {"i": (n, k, 0), "j": (1, 0, 1), "k": (0, 1, n)}[order[2]]

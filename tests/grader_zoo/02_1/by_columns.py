# status: WRONG
# words: They are row-major; hint 2
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return {"i": (1, 0, 1), "j": (0, k, m), "k": (m, 1, 0)}[order[2]]

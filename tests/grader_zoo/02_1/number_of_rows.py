# status: WRONG
# words: not how many rows there are; hint 2
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return {"i": (m, 0, m), "j": (0, 1, 1), "k": (1, k, 0)}[order[2]]

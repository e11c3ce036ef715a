# status: WRONG
# words: Every move counts as 1
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    return int(order[2] != "j"), int(order[2] != "i"), int(order[2] != "k")

# status: WRONG
# words: moves('ijk', 5, 7, 3) is [0, 0, 0], should be [1, 7, 0]
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    # your code: roughly 6 lines
    return 0, 0, 0

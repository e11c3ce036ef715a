# status: WRONG
# words: Does it end with a `return`
# exercise 02.1: the strides of the six orders
def moves(order, m, n, k):
    if order == "ijk":
        return 1, n, 0

# status: PASS
# words:
# exercise 02.1: the strides of the six orders
def stride(names, columns, inner):
    row, column = names
    if inner == column:
        return 1
    return columns if inner == row else 0


def moves(order, m, n, k):
    inner = order[len(order) - 1]
    return [stride("ik", k, inner), stride("kj", n, inner), stride("ij", n, inner)]

# status: WRONG
# words: what one block loads
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    return k * (rows + columns)

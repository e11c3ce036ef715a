# status: WRONG
# words: What lies beyond the edge is not loaded
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    return -(-m // rows) * -(-n // columns) * k * (rows + columns)

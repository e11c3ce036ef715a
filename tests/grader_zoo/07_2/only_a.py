# status: WRONG
# words: B's is missing
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    return k * m * -(-n // columns)

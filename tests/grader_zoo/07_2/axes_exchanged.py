# status: WRONG
# words: Rows and columns are exchanged
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    return k * (m * -(-n // rows) + n * -(-m // columns))

# status: WRONG
# words: there is one more
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    return k * (m * (n // columns) + n * (m // rows))

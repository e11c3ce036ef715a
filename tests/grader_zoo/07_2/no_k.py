# status: WRONG
# words: for one step of k
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    return m * -(-n // columns) + n * -(-m // rows)

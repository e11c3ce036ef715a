# status: WRONG
# words: each matrix once
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    return m * k + k * n

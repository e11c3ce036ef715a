# status: WRONG
# words: Tiles come whole
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    return m * n * k / columns + m * n * k / rows

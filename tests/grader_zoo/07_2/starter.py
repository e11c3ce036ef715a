# status: WRONG
# words: with no tiles at all
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    # your code: roughly 3 lines
    return 2 * m * n * k

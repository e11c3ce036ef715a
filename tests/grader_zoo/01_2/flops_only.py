# status: WRONG
# words: return the bytes too
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return 2 * m * n * k

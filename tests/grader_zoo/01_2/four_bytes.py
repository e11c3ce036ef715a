# status: WRONG
# words: take `bytes_each`
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return 2 * m * n * k, 4 * (m * k + k * n + m * n)

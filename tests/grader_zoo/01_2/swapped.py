# status: WRONG
# words: the other way round
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return bytes_each * (m * k + k * n + m * n), 2 * m * n * k

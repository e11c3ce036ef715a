# status: WRONG
# words: eight for a byte
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return 2 * m * n * k, 8 * bytes_each * (m * k + k * n + m * n)

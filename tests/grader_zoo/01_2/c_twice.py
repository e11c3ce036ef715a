# status: WRONG
# words: C is counted twice
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return 2 * m * n * k, bytes_each * (m * k + k * n + 2 * m * n)

# status: WRONG
# words: counts elements; hint 3
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return 2 * m * n * k, m * k + k * n + m * n

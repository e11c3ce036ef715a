# status: WRONG
# words: The first addition of each sum is left out
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return m * n * (2 * k - 1), bytes_each * (m * k + k * n + m * n)

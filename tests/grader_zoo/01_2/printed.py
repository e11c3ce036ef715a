# status: WRONG
# words: Does it end with a `return`
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    print(2 * m * n * k, bytes_each * (m * k + k * n + m * n))

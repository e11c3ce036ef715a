# status: WRONG
# words: are for squares; hint 2
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return 2 * n**3, bytes_each * (m * k + k * n + m * n)

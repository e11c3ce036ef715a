# status: WRONG
# words: C has to be written too; hint 2
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return 2 * m * n * k, bytes_each * (m * k + k * n)

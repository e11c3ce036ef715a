# status: WRONG
# words: Compulsory is: each element once
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return 2 * m * n * k, bytes_each * (2 * m * n * k + m * n)

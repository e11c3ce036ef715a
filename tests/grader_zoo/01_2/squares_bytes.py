# status: WRONG
# words: which shape has each matrix
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return 2 * m * n * k, bytes_each * 3 * n**2

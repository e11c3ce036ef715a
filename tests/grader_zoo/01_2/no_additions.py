# status: WRONG
# words: multiplications alone; hint 1
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    return m * n * k, bytes_each * (m * k + k * n + m * n)

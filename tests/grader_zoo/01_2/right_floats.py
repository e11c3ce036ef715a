# status: PASS
# words:
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    flops = 2.0 * m * n * k
    size = m * k * bytes_each + k * n * bytes_each + m * n * bytes_each
    return [flops, size]

# status: TIMEOUT
# words: Which loop never ends, or runs far too often
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    flops = 0
    for i in range(m):
        for j in range(n):
            for p in range(k):
                flops += 2
    return flops, bytes_each * (m * k + k * n + m * n)

def costs(m, n, k, bytes_each):
    flops = 2 * m * n * k
    size = bytes_each * (m * k + k * n + m * n)
    return flops, size

# status: PASS
# words:
# exercise 01.2: what a product must cost
def elements(rows, columns):
    return rows * columns


def costs(m, n, k, bytes_each):
    matrices = ((m, k), (k, n), (m, n))
    size = sum(elements(rows, columns) for rows, columns in matrices) * bytes_each
    return elements(m, n) * (k + k), size

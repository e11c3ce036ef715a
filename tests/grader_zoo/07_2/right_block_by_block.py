# status: PASS
# words:
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    total = 0
    for top in range(0, m, rows):
        for left in range(0, n, columns):
            total += k * (min(rows, m - top) + min(columns, n - left))
    return total

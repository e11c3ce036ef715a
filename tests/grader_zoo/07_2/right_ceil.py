# status: PASS
# words:
# exercise 07.2: traffic, predicted
def global_loads(m, n, k, rows, columns):
    return k * m * math.ceil(n / columns) + k * n * math.ceil(m / rows)

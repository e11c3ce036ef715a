def add_product(a, b, c, rows, columns, steps):
    longest = max(rows, columns, steps, key=len)
    if len(longest) <= 1:
        for i in rows:
            for j in columns:
                for k in steps:
                    c[i, j] += a[i, k] * b[k, j]
        return
    middle = len(longest) // 2
    for half in (longest[:middle], longest[middle:]):
        if longest is rows:
            add_product(a, b, c, half, columns, steps)
        elif longest is columns:
            add_product(a, b, c, rows, half, steps)
        else:
            add_product(a, b, c, rows, columns, half)


def every_cache(a, b, c):
    M, K = a.shape
    c[:] = 0
    add_product(a, b, c, range(M), range(b.shape[1]), range(K))

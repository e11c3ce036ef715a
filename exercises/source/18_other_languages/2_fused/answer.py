def rounded(x, bits):
    unit = 2 ** max(0, abs(x).bit_length() - bits)
    below, rest = divmod(x, unit)
    if 2 * rest > unit or (2 * rest == unit and below % 2):
        below += 1
    return below * unit


def dot(a, b, way):
    total = 0
    for x, y in zip(a, b, strict=True):
        if way == "narrow":
            x, y = rounded(x, 11), rounded(y, 11)
        product = x * y
        if way == "unfused":
            product = rounded(product, 24)
        total = rounded(total + product, 24)
    return total

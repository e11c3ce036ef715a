def rounded(x, bits):
    unit = 2 ** max(0, abs(x).bit_length() - bits)
    below, rest = divmod(x, unit)
    if 2 * rest > unit or (2 * rest == unit and below % 2):
        below += 1
    return below * unit


def dot(a, b, way):
    # your code: roughly 8 lines
    return 0

def step_flops(rows, widths, frozen):
    total, trained_before = 0, False
    for k, n, fixed in zip(widths, widths[1:], frozen, strict=False):
        products = 1 + (not fixed) + trained_before
        total += products * 2 * rows * k * n
        trained_before = trained_before or not fixed
    return total

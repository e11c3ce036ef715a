# NBVAL_CHECK_OUTPUT
c, walk = multiply(product, a, b)
print(c.nan_to_num(-1)[-1, -8:].int().tolist())  # -1: no program stored there

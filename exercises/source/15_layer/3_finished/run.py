# NBVAL_CHECK_OUTPUT
c, walk = finish(finished_layer, a, b, bias, residual)
print(c.nan_to_num(-1)[-1, -8:].round().int().tolist())  # -1: no program stored there

# NBVAL_CHECK_OUTPUT
a, b = Problem(20, 35, 40, "float16").inputs(kind="integers", device="cpu")
print((a.double() @ b.double())[-1, -8:].int().tolist())  # the end of C's last row

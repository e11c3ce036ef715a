# NBVAL_CHECK_OUTPUT
for cut in ("rows", "inner", "scattered", "gathered", "grid"):
    print(cut, [received(cut, 4096, 4096, 4096, p) // 10**6 for p in (1, 4, 16, 64)], "MB")

# NBVAL_CHECK_OUTPUT
for m, n in ((4096, 4096), (3072, 768), (100, 100)):
    print(f"{m} × {n}: {used(m, n, 128, 256, 132):.1%} used")

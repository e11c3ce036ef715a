# NBVAL_CHECK_OUTPUT
for m, n, k in ((8192, 8192, 2048), (4096, 14336, 4096), (16384, 4096, 64)):
    separate, fused = moved(m, n, k, ("bias", "gelu", "residual"), 2)
    print(f"{m} × {n} × {k}: {separate / 1e6:.0f} MB, fused {fused / 1e6:.0f} MB")

# NBVAL_CHECK_OUTPUT
for kib in (32, 48, 2048):
    print(f"{kib} KiB: T = {largest_tile(kib * 1024, 4)} in float32")

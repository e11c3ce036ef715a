# NBVAL_CHECK_OUTPUT
flops, size = costs(64, 64, 64, 4)
print(f"{flops:,} FLOPs, {size:,} bytes")

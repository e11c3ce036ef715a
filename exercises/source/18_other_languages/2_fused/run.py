# NBVAL_CHECK_OUTPUT
lists = (
    ([-4096, 4097], [4096, 4097]),
    ([4097, 1, 1, 1, 1], [4097, 1, 1, 1, 1]),
    ([9333, 8791, 6084, 6437], [9972, 5830, 2698, 6811]),
)
for a, b in lists:
    exact = sum(x * y for x, y in zip(a, b, strict=True))
    off = {way: dot(a, b, way) - exact for way in ("fused", "unfused", "narrow")}
    print(f"exact {exact}, off by {off}")

# NBVAL_CHECK_OUTPUT
for a, b in (([-4096, 4097], [4096, 4097]), ([4097] * 6, [4097] * 6), ([3000] * 6, [5000] * 6)):
    exact = sum(x * y for x, y in zip(a, b, strict=True))
    print({way: dot(a, b, way) - exact for way in ("fused", "unfused", "narrow")})

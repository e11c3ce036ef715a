# NBVAL_CHECK_OUTPUT
for bits in (0x3F801FFF, 0x3F803000, 0x3F805000, 0xBF805000, 0x3FFFF800):
    print(f"{bits:08x}", [f"{narrowed(bits, way):08x}" for way in ("cut", "away", "even")])

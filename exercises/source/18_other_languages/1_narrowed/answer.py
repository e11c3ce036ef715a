def narrowed(bits, way):
    if way == "away":
        bits += 0x1000
    if way == "even":
        bits += 0x0FFF + (bits >> 13 & 1)
    return bits & 0xFFFF_E000

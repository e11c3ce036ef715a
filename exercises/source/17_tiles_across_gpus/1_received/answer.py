def received(cut, m, n, k, p):
    others = p - 1
    if cut == "inner":
        return 2 * others * m * n * 2 // p
    if cut == "scattered":
        return others * m * n * 2 // p
    if cut == "gathered":
        return others * m * k * 2 // p
    if cut == "grid":
        side = round(p**0.5)
        return (side - 1) * (m * k + k * n) * 2 // p
    return 0

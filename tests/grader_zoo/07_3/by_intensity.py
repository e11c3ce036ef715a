# status: PASS
# words: 
# exercise 07.3: read a roofline
def intensity(rows, columns):
    return 2 / (FLOAT * (1 / rows + 1 / columns))


def roofs(tile_m, tile_n, own_m, own_n):
    first = min(intensity(tile_m, tile_n) * GLOBAL, PEAK)
    second = min(intensity(own_m, own_n) * SHARED, PEAK)
    if first == PEAK and second == PEAK:
        return first, second, "arithmetic"
    return first, second, "shared memory" if second <= first else "global memory"

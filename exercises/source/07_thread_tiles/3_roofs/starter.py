def roofs(tile_m, tile_n, own_m, own_n):
    # your code: roughly 7 lines
    return PEAK, PEAK, "arithmetic"

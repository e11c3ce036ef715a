def roofs(tile_m, tile_n, own_m, own_n):
    of_block = 2 * tile_m * tile_n / (FLOAT * (tile_m + tile_n)) * GLOBAL
    of_thread = 2 * own_m * own_n / (FLOAT * (own_m + own_n)) * SHARED
    lower = "global memory" if of_block < of_thread else "shared memory"
    if min(of_block, of_thread) >= PEAK:
        lower = "arithmetic"
    return min(PEAK, of_block), min(PEAK, of_thread), lower

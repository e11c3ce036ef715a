def tile_in_groups(offsets, tile, block_m):
    # your code: roughly 8 lines
    return 0, 0, 0

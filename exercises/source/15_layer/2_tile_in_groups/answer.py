def tile_in_groups(offsets, tile, block_m):
    begin = 0
    for group, end in enumerate(offsets):
        tiles = -(-(end - begin) // block_m)
        if tile < tiles:
            first = begin + tile * block_m
            return group, first, min(block_m, end - first)
        tile -= tiles
        begin = end

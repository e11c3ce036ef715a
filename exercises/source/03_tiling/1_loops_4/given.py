T = 4  # the edge of a tile

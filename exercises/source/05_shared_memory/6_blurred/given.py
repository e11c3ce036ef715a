SIDE = TILE + 2  # of a tile with one row or column more on each side

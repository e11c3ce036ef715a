EDGE = 32  # of a tile
ROWS = 8  # of threads in a block

WARPS_M, WARPS_N, LANES_M, LANES_N, OWN_M, OWN_N = 2, 2, 4, 8, 2, 2
TILE_M, TILE_N, DEPTH = 16, 32, 8  # a block's elements of C, and the depth of a tile along K
A_ROW, B_ROW = 20, 36  # rows of the shared tiles, padded so that no store has a conflict
THREADS = 128  # of a block, along x

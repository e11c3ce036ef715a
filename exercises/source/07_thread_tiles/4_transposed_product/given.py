TX, TY = 32, 2  # threads of a block, in x and in y
OWN_M, OWN_N = 4, 2  # elements of C that a thread owns: so many rows, so many columns
TILE_M, TILE_N, TILE_K = TY * OWN_M, TX * OWN_N, 4

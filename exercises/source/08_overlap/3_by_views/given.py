from tiled_matmul.kit.tile_view import copy_tile_async, tile

DEPTH = 8  # a multiple of TILE

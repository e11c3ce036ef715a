# status: WRONG
# words: column by column; hint 1
# exercise 10.1: a tile for a number
def tile_of(program, tiles_m, tiles_n, group_m):
    return program % tiles_m, program // tiles_m

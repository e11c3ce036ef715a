# status: WRONG
# words: should be [2, 1]; hint 1
# exercise 10.1: a tile for a number
def tile_of(program, tiles_m, tiles_n, group_m):
    # your code: roughly 5 lines
    return 0, 0

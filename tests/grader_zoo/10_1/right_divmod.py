# status: PASS
# words: 
# exercise 10.1: a tile for a number
def tile_of(program, tiles_m, tiles_n, group_m):
    group, place = divmod(program, group_m * tiles_n)
    tile_n, row = divmod(place, min(group_m, tiles_m - group * group_m))
    return group * group_m + row, tile_n

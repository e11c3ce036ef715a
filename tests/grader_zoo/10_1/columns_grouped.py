# status: WRONG
# words: A group has group_m rows; hint 1
# exercise 10.1: a tile for a number
def tile_of(program, tiles_m, tiles_n, group_m):
    group, place = divmod(program, group_m * tiles_m)
    columns = min(tiles_n - group * group_m, group_m)
    return place // columns, group * group_m + place % columns

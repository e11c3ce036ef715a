# status: PASS
# words: 
# exercise 10.1: a tile for a number
def tile_of(program, tiles_m, tiles_n, group_m):
    number = 0
    first = program // (group_m * tiles_n) * group_m
    number = first * tiles_n
    for column in range(tiles_n):
        height = min(first + group_m, tiles_m) - first
        if program < number + height:
            return first + program - number, column
        number += height

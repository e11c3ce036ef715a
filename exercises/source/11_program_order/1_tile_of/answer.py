def tile_of(program, tiles_m, tiles_n, group_m):
    group = program // (group_m * tiles_n)
    place = program % (group_m * tiles_n)
    first_m = group * group_m
    rows = min(tiles_m - first_m, group_m)
    return first_m + place % rows, place // rows

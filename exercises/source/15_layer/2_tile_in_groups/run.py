# NBVAL_CHECK_OUTPUT
for tile in range(4):
    group, first, rows = tile_in_groups((2, 9, 9, 13), tile, block_m=4)
    print(f"tile {tile}: group {group}, {rows} rows from row {first}")

# NBVAL_CHECK_OUTPUT
rows = []
for tile in ((128, 256, 64), (64, 64, 128), (256, 128, 64), (256, 256, 64)):
    arithmetic, shared, longer = step(*tile)
    row = {"tile": "×".join(map(str, tile)), "arithmetic (clocks)": round(arithmetic)}
    rows.append(row | {"shared memory (clocks)": round(shared), "longer": longer})
notebook.table(rows)

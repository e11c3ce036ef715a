# NBVAL_CHECK_OUTPUT
rows = []
for setting in ((128, 256, 64, 8, 3), (128, 256, 128, 8, 3), (128, 256, 64, 4, 3)):
    shared, sums, fits = budget(*setting)
    row = {"setting": setting, "shared memory (KiB)": round(shared / 1024)}
    rows.append(row | {"sums a thread": round(sums), "fits": str(fits)})
notebook.table(rows)

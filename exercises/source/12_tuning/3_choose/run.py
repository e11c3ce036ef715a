# NBVAL_CHECK_OUTPUT
rows = [
    {"C": f"{m} × {n}", "setting": choose(m, n)}
    for m, n in ((4096, 4096), (1024, 1024), (640, 640), (512, 4096))
]
notebook.table(rows)

# NBVAL_CHECK_OUTPUT
a = torch.arange(50 * 496).reshape(50, 496).remainder(7).sub(3).half()
x = torch.arange(496).remainder(5).sub(2).half()
rows = []
for block_m, block_k in ((64, 4), (16, 16), (4, 64), (1, 256)):
    c, walk = along_rows(rows_times, a, x, block_m, block_k)
    wrong = int((c != (a.float() @ x.float()).half()).sum())
    loaded = sum(event.elements for event in walk.select(op="load")) / a.numel()
    taken = sectors(walk, *a.shape) / (a.numel() / 16)
    row = {"tile": f"{block_m}×{block_k}", "wrong": wrong, "programs": len(walk.programs)}
    rows.append(row | {"elements loaded / A's": loaded, "sectors loaded / A's": taken})
notebook.table(rows)

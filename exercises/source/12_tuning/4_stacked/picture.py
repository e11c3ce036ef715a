from tiled_matmul.plots.tasks import Panel, Part, task

panels = [Panel("B", 6, 15, 10, 0, "b", (3, 5), [Part(0, 5, 6, 5)], "K × N")]
shares = ((0, 0), (3, 2), (0, 5), (0, 1))  # the first row of a matrix, and how many of its rows
for z, (first, rows) in enumerate(shares):
    for name, columns, x, left, wide in (("a", 6, 0, 0, 6), ("c", 15, 10, 5, 5)):
        parts = [Part(first, left, rows, wide)] * bool(rows)
        tile = (5, 3) if name == "a" else (5, 5)
        title = f"{name}[{z}]"
        panels.append(Panel(title, 5, columns, x, 9.5 + 7 * z, name, tile, parts))
words = (
    "Four matrices of A with five rows each lie one below the other, and four of C beside them. "
    "One program's tile has eight rows: the last two of matrix 1, all five of matrix 2 and the "
    "first one of matrix 3. It multiplies them by one column of tiles of B."
)
task(panels, "Program (1, 1): eight rows, from three matrices of five", words)

from tiled_matmul.plots.tasks import Panel, Part, task

mine = (1, 3)
of_a = [Part(2 * row, 0, 2, 4, text=f"{i + 1}.") for i, row in enumerate(mine)]
of_c = [Part(2 * row, 3, 2, 3, text=f"{i + 1}.") for i, row in enumerate(mine)]
panels = [
    Panel("B", 4, 9, 7, 0, "b", (4, 3), [Part(0, 3, 4, 3, text="kept")]),
    Panel("A", 9, 4, 0, 7, "a", (2, 4), of_a),
    Panel("C", 9, 9, 7, 7, "c", (2, 3), of_c),
]
words = (
    "A has five rows of tiles and one column of them, B one row of tiles with three columns. A "
    "program keeps the middle tile of B. It multiplies the tiles in rows 1 and 3 of A by it, "
    "one after the other, and stores two tiles of the middle column of C."
)
task(panels, "One of two programs of a column: two tiles, one load of B", words)

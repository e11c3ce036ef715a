from tiled_matmul.plots.tasks import Panel, Part, task

LOOKS = "strong", "weak", "", "strong"  # of the groups
groups = (0, 0, 2), (1, 2, 7), (3, 9, 4)  # group, first row, rows
tiles = (0, 0, 2), (1, 2, 4), (1, 6, 3), (3, 9, 4)
bands = [Part(first, 0, rows, 8, LOOKS[group], f"group {group}") for group, first, rows in groups]
task(
    [
        Panel("A", 13, 8, 0, 0, "a", parts=bands),
        *(
            Panel(
                *(f"tile {number}", 4, 6, 14 + 9 * number, first, "a"),
                parts=[
                    Part(rows, 0, 4 - rows, 6, "muted"),
                    Part(0, 0, rows, 6, LOOKS[group], f"{rows} rows"),
                ],
            )
            for number, (group, first, rows) in enumerate(tiles)
        ),
    ],
    "Each group begins with a tile of its own; group 2 is empty",
    "13 rows of A in three bands: group 0 has rows 0 and 1, group 1 rows 2 to 8, group 3 rows 9 to "
    "12. Group 2 has none. Beside them are four tiles of four rows. Tile 0 begins in row 0, and "
    "two of its rows belong to its group. Tiles 1 and 2 begin in rows 2 and 6; four and three of "
    "their rows belong to group 1. Tile 3 begins in row 9 and is all of group 3.",
)

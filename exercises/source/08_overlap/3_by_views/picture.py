from tiled_matmul.plots.tasks import Panel, Part, task

panels = [
    Panel(
        "B: tile(b, DEPTH, TILE)",
        20,
        14,
        x=23,
        color="b",
        tile=(8, 4),
        parts=[Part(8, 4, 8, 4, text="[1, 1]")],
    ),
    Panel(
        "A: tile(a, TILE, DEPTH)",
        10,
        20,
        y=23,
        color="a",
        tile=(4, 8),
        parts=[Part(4, 8, 4, 8, text="[1, 1]")],
    ),
    Panel(
        "C: tile(c, TILE, TILE)",
        10,
        14,
        x=23,
        y=23,
        color="c",
        tile=(4, 4),
        parts=[Part(4, 4, 4, 4, text="[1, 1]")],
    ),
]
task(
    panels,
    "With TILE = 4 and DEPTH = 8, block (x 1, y 1) copies these tiles of A and B in step 1",
    "A cut into tiles of 4 rows and 8 columns, B into tiles of 8 rows and 4 columns, C into tiles "
    "of 4 × 4; of each the tile [1, 1] is marked. At the right and lower edges tiles are cut.",
)

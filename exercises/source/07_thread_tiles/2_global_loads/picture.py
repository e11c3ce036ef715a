from tiled_matmul.plots.tasks import Panel, Part, task

task(
    (
        Panel("A", 10, 7, y=10, color="a", parts=(Part(4, 0, 4, 7),), note="m × k"),
        Panel("B", 7, 17, x=10, color="b", parts=(Part(0, 6, 7, 6),)),
        Panel(
            "C",
            10,
            17,
            x=10,
            y=10,
            color="c",
            tile=(4, 6),
            parts=(Part(4, 6, 4, 6), Part(4, 6, 4, 6, "focus")),
            note="m × n, in tiles of rows × columns",
        ),
    ),
    "What one block loads, and how many blocks?",
    "C is divided into 3 by 3 tiles, cut at the right and lower edges. For the tile in the middle, "
    "a block loads its rows of A and its columns of B.",
)

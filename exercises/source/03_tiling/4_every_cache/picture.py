from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel("largest cache", 16, 16, 0, 0, "c", (8, 8), [Part(0, 8, 8, 8)]),
        Panel("smaller", 16, 16, 20, 0, "c", (4, 4), [Part(0, 8, 8, 8, "weak"), Part(4, 8, 4, 4)]),
        Panel(
            "smallest", 16, 16, 40, 0, "c", (2, 2), [Part(4, 8, 4, 4, "weak"), Part(4, 10, 2, 2)]
        ),
    ],
    "One walk over C, and a tile of the right size in it for each cache",
    "The same 16 by 16 matrix C three times. On the left it is cut in tiles of 8 by 8, one of them "
    "in colour; in the middle in tiles of 4 by 4, one within that tile in colour; on the right in "
    "tiles of 2 by 2, one within that.",
)

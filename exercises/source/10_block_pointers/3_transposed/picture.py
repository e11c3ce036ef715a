from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel(
            "A as it is stored: K × M", 40, 24, 0, 0, "a", (16, 16),
            [Part(0, 0, 40, 16, "weak"), Part(16, 0, 16, 16)],
        ),
        Panel(
            "B: K × N", 40, 35, 42, 0, "b", (16, 16),
            [Part(0, 16, 40, 16, "weak"), Part(16, 16, 16, 16)],
        ),
        Panel(
            "C = Aᵀ·B: M × N", 24, 35, 42, 48, "c", (16, 16),
            [Part(0, 16, 16, 16), Part(0, 16, 16, 16, "focus")],
        ),
    ],
    "Program (1, 0) walks down A's columns 0 to 15 and down B's columns 16 to 31",
    "A as it is stored, with K rows and M columns, and B beside it; K runs down in both. A strip "
    "of 16 columns is marked in each, with the tiles of the second step in full colour. Below B "
    "lies C, with the tile of x = 1 and y = 0.",
)  # fmt: skip

from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel(
            "A: M × K", 20, 40, 0, 46, "a", (16, 16),
            [Part(0, 0, 16, 40, "weak"), Part(0, 16, 16, 16)],
            "tiles of 16 × 16",
        ),
        Panel(
            "B: K × N", 40, 35, 46, 0, "b", (16, 16),
            [Part(0, 16, 40, 16, "weak"), Part(16, 16, 16, 16)],
        ),
        Panel(
            "C: M × N", 20, 35, 46, 46, "c", (16, 16),
            [Part(0, 16, 16, 16), Part(0, 16, 16, 16, "focus")],
        ),
    ],
    "Program (1, 0) walks along A's rows 0 to 15 and down B's columns 16 to 31",
    "A lies left of C, B above it, all divided into tiles of 16 × 16, with smaller tiles at their "
    "ends. A strip of A and a strip of B are marked, with the two tiles of the second step in full "
    "colour, and the tile of C with x = 1 and y = 0.",
)  # fmt: skip

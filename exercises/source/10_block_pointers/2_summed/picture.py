from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel(
            "A: float16", 16, 64, 0, 0, "a", (16, 16),
            [Part(0, 16 * i, 16, 16, "weak", f"step {i}") for i in range(4)],
            "a tile of 16 × 16 in each step",
        ),
        Panel(
            "the sums: ?", 16, 16, 6, 26, "c", None, [Part(0, 0, 16, 16, "weak")],
            "kept from step to step",
        ),
        Panel("C: float16", 16, 16, 42, 26, "c", None, [Part(0, 0, 16, 16)], "rounded once"),
    ],
    "A sum passes through many steps, and is rounded to float16 once",
    "Four tiles of A, one for each step along K. Below them the tile of sums, which is kept from "
    "step to step and whose type is in question, and the tile of C in float16.",
)  # fmt: skip

from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel(
            "A",
            12,
            12,
            color="a",
            tile=(4, 4),
            parts=[
                Part(3, 3, 6, 6, "weak"),
                Part(4, 6, 3, 3),
                Part(4, 6, 3, 3, "focus"),
            ],
            note="pale: what one block needs",
        ),
        Panel(
            "C",
            12,
            12,
            x=15,
            tile=(4, 4),
            parts=[Part(4, 4, 4, 4, "weak"), Part(5, 7), Part(5, 7, look="focus")],
            note="pale: what it owns",
        ),
    ],
    "A thread adds up nine elements of A",
    "A and C with 12 × 12 elements in tiles of 4 × 4. The middle block owns a tile of C, and needs "
    "6 × 6 elements of A: the same tile and one row and column more on each side. One thread, "
    "framed in black at the right border of the tile, needs nine of them, three beyond the tile.",
)

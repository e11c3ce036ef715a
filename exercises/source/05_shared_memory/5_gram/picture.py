from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

task(
    [
        Panel(
            "A",
            12,
            8,
            color="a",
            tile=(4, 4),
            parts=[Part(0, 0, 4, 8), Part(8, 0, 4, 8, "weak")],
            note="two rows of tiles",
        ),
        Panel(
            "C = A·Aᵀ",
            12,
            12,
            x=11,
            tile=(4, 4),
            parts=[
                Part(0, 8, 4, 4),
                Part(8, 0, 4, 4, "weak"),
                Part(1, 11, look="focus"),
                Part(11, 1, look="focus"),
            ],
            note="a tile and its mirror image",
        ),
    ],
    "A block stores its tile twice",
    "A with three rows of tiles, and C = A·Aᵀ with three by three tiles. The block in the upper "
    "right corner multiplies the first row of tiles of A by the last one. It stores its tile there "
    "and its mirror image in the lower left corner. An element and its mirror image are framed.",
    [Arrow((21.6, 2.2), (13.2, 10.6))],
)

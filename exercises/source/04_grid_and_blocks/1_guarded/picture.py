from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel("A, 5 × 7", 5, 7, x=0, y=9, color="a", parts=[Part(3, 0, 1, 7)]),
        Panel("B, 7 × 10", 7, 10, x=9, y=0, color="b", parts=[Part(0, 8, 7, 1)]),
        Panel("C, 5 × 10", 5, 10, x=9, y=9, parts=[Part(3, 8)]),
        Panel(
            "",
            8,
            16,
            x=9,
            y=9,
            color="muted",
            tile=(4, 8),
            parts=[
                Part(3, 8, look="focus"),
                Part(0, 10, 5, 6, "muted"),
                Part(5, 0, 3, 16, "muted"),
            ],
            note="2 × 2 blocks of 8 × 4 threads; grey: no element",
        ),
    ],
    "A thread owns one element; many have none",
    "C has 5 rows and 10 columns. Four blocks, each 8 threads wide and 4 high, cover 8 rows and 16 "
    "columns. One thread, framed in black, owns C[3, 8] and reads row 3 of A and column 8 of B. "
    "The threads beyond C's edges, in grey, own no element.",
)

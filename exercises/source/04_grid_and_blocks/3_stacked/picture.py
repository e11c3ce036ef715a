from tiled_matmul.plots.tasks import Panel, Part, task

LAYERS = range(3)

task(
    [
        *(
            Panel(
                f"A[{layer}]",
                3,
                4,
                y=6 * layer,
                color="a",
                parts=[Part(1, 0, 1, 4)] if layer == 1 else [],
            )
            for layer in LAYERS
        ),
        *(
            Panel(
                f"B[{layer}]",
                4,
                6,
                x=6,
                y=6 * layer,
                color="b",
                parts=[Part(0, 3, 4, 1)] if layer == 1 else [],
            )
            for layer in LAYERS
        ),
        *(
            Panel(
                f"C[{layer}]",
                3,
                6,
                x=14,
                y=6 * layer,
                tile=(2, 4),
                parts=[
                    Part(0, 0, 2, 4, "weak"),
                    *([Part(1, 3), Part(1, 3, look="focus")] if layer == 1 else []),
                ],
            )
            for layer in LAYERS
        ),
    ],
    "A block reaches through several layers",
    "The first three layers of the stacks A, B and C. A block of 4 × 2 × 3 threads covers two rows "
    "and four columns of three layers of C. One thread, framed in black, owns C[1, 1, 3] and reads "
    "row 1 of A[1] and column 3 of B[1].",
)

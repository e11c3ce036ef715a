from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel("C now: a warp owns", 16, 16, parts=[Part(0, 0, 16, 2)], note="16 rows, 2 columns"),
        Panel(
            "C as asked for: a warp owns",
            16,
            16,
            x=20,
            parts=[Part(0, 0, 2, 16)],
            note="2 rows, 16 columns",
        ),
    ],
    "The same block, with x down or along a row",
    "The tile of C of a block with 16 × 16 threads, twice. On the left the first warp owns two "
    "columns of 16 elements each. On the right, as the exercise asks for, it owns two rows of 16.",
)

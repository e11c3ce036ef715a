from tiled_matmul.plots.tasks import Panel, Part, task

task(
    (
        Panel(
            "an array in shared memory with 24 columns",
            18,
            30,
            color="b",
            parts=(
                Part(0, 24, 18, 6, "muted"),
                Part(1, 2, 8, 4, text="(8, 4)"),
                Part(3, 12, 4, 8, text="(4, 8)"),
                Part(12, 4, 2, 16, text="(2, 16)"),
            ),
            note="grey: padding, up to the row length that is asked for",
            shared=True,
        ),
    ),
    "Each patch is one access of a warp",
    "An array with 24 columns and some padding behind each row. Three patches of 32 elements are "
    "marked: 8 rows of 4, 4 rows of 8 and 2 rows of 16.",
)

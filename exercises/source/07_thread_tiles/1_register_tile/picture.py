from tiled_matmul.plots.tasks import Panel, Part, task

task(
    (
        Panel(
            "a_tile",
            8,
            8,
            y=11,
            color="a",
            parts=(Part(2, 3, 2, 1), Part(2, 3, 2, 1, "focus")),
            note="two elements",
            shared=True,
        ),
        Panel(
            "b_tile",
            8,
            8,
            x=11,
            color="b",
            parts=(Part(3, 4, 1, 2), Part(3, 4, 1, 2, "focus")),
            shared=True,
        ),
        Panel(
            "C",
            8,
            8,
            x=11,
            y=11,
            color="c",
            tile=(2, 2),
            parts=(Part(2, 4, 2, 2), Part(2, 4, 2, 2, "focus")),
            note="four sums",
        ),
    ),
    "Four loads for four products",
    "A block's tiles of 8 by 8 elements. For one k, thread (x 2, y 1) loads two elements of A "
    "below each other and two of B side by side, and adds to four elements of C.",
)

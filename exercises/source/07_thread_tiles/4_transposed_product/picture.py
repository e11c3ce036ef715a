from tiled_matmul.plots.tasks import Panel, Part, task

OWNED = [(row, column) for row in (1, 3, 5, 7) for column in (2, 10)]

task(
    (
        Panel(
            "a_tile",
            4,
            8,
            y=3,
            color="a",
            parts=[Part(1, row) for row in (1, 3, 5, 7)],
            note="K runs down",
            shared=True,
        ),
        Panel(
            "b_tile",
            4,
            16,
            x=11,
            y=3,
            color="b",
            parts=[Part(1, 2), Part(1, 10), Part(1, 2, 1, 1, "focus"), Part(1, 10, 1, 1, "focus")],
            note="for one j, neighbours in x load neighbours",
            shared=True,
        ),
        Panel(
            "C",
            8,
            16,
            x=11,
            y=12,
            color="c",
            parts=[
                *(Part(*place) for place in OWNED),
                *(Part(*place, 1, 1, "focus") for place in OWNED),
            ],
            note="the 4 × 2 elements of one thread",
        ),
    ),
    "A thread's elements are TY and TX apart",
    "The tiles of A and B have 4 rows, one for each k. A thread owns elements of C that lie 2 rows "
    "and 8 columns apart; for one k it loads four elements of A and two of B. TX is drawn as 8.",
)

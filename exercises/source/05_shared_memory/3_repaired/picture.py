from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

task(
    [
        Panel(
            "A, the tiles of two iterations",
            4,
            8,
            color="a",
            tile=(4, 4),
            parts=[Part(0, 0, 4, 4, "weak"), Part(0, 4, 4, 4)],
        ),
        Panel(
            "left",
            4,
            4,
            x=15,
            color="a",
            shared=True,
            parts=[
                Part(0, 0, 4, 4, "weak"),
                Part(0, 0, 2, 4),
                Part(3, 0, 1, 4, look="focus"),
            ],
            note="half staged anew",
        ),
        Panel("sum", 1, 1, x=23, y=3, parts=[Part(0, 0), Part(0, 0, look="focus")]),
    ],
    "Who may overwrite a tile, and when?",
    "On the left two tiles of A, which two iterations of the loop stage one after the other. On "
    "the right the one tile in shared memory, with a dashed frame: two of its rows already hold "
    "the second tile, while a thread still reads a row of the first one, framed in black.",
    [Arrow((8.4, 1), (14.4, 1)), Arrow((19.6, 3.5), (22.6, 3.5))],
)

from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel(
            "A, 6 × 5",
            6,
            5,
            y=9.5,
            color="a",
            parts=[Part(4, 4, 2, 1)],
        ),
        Panel(
            "B, 5 × 7",
            5,
            7,
            x=9.5,
            color="b",
            parts=[Part(4, 4, 1, 3)],
        ),
        Panel("C, 6 × 7", 6, 7, x=9.5, y=9.5, parts=[Part(4, 4, 2, 3, "weak")]),
        Panel("", 8, 8, y=9.5, color="muted", tile=(4, 4), parts=[Part(4, 4, 4, 4, "focus")]),
        Panel("", 8, 8, x=9.5, color="muted", tile=(4, 4), parts=[Part(4, 4, 4, 4, "focus")]),
        Panel("", 8, 8, x=9.5, y=9.5, color="muted", tile=(4, 4)),
    ],
    "The last tiles reach beyond the edges",
    "A with 6 rows and 5 columns, B with 5 rows and 7 columns, C with 6 rows and 7 columns, each "
    "covered by tiles of 4 × 4. The last block's last tiles are framed in black: the tile of A "
    "holds two elements of A, the tile of B three elements of B. Whatever else they hold must add "
    "nothing.",
)

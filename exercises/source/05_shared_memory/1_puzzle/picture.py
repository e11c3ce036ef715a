from tiled_matmul.plots.tasks import Panel, Part, task

COPY = {"shared": True, "rows": 3, "columns": 3}

task(
    [
        Panel(
            "A",
            9,
            9,
            y=11,
            color="a",
            tile=(3, 3),
            parts=[Part(3, 0, 3, 9, "weak"), Part(3, 3, 3, 3)],
        ),
        Panel(
            "B",
            9,
            9,
            x=11,
            color="b",
            tile=(3, 3),
            parts=[Part(0, 6, 9, 3, "weak"), Part(3, 6, 3, 3)],
        ),
        Panel(
            "C",
            9,
            9,
            x=11,
            y=11,
            tile=(3, 3),
            parts=[Part(3, 6, 3, 3, "weak"), Part(4, 7), Part(4, 7, look="focus")],
        ),
        Panel("tile of A", x=22.5, y=14, color="a", parts=[Part(1, 0, 1, 3)], **COPY),
        Panel("tile of B", x=22.5, y=3, color="b", parts=[Part(0, 1, 3, 1)], **COPY),
    ],
    "One of three pairs of tiles, staged and used",
    "A, B and C with 9 × 9 elements in tiles of 3 × 3. The block in the middle row and last column "
    "of blocks works through three tiles of A and three of B, in pairs; the second pair is marked. "
    "A copy of each is in shared memory, with a dashed frame. One thread, framed in black, reads "
    "a row of A's copy and a column of B's.",
)

from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

task(
    (
        Panel(
            "a",
            8,
            12,
            color="a",
            tile=(4, 4),
            parts=(Part(0, 8, 4, 4, "weak"), Part(1, 8, 1, 4), Part(1, 8, 1, 4, "focus")),
            note="a warp loads a row",
        ),
        Panel(
            "tile",
            4,
            4,
            x=16,
            y=2,
            color="muted",
            parts=(Part(1, 0, 1, 4, "muted"), Part(0, 2, 4, 1, "focus")),
            note="stores it here;\nreads a column",
            shared=True,
        ),
        Panel(
            "c",
            12,
            8,
            x=24,
            color="c",
            tile=(4, 4),
            parts=(Part(8, 0, 4, 4, "weak"), Part(10, 0, 1, 4), Part(10, 0, 1, 4, "focus")),
            note="and stores a row",
        ),
    ),
    "Rows on both sides; the tile turns them",
    "A tile of a is loaded row by row into shared memory, where a column of it is read and stored "
    "to a row of the transposed tile of c. Tiles are drawn with 4 rows in place of 32.",
    (Arrow((12.4, 2.5), (15.2, 3.3)), Arrow((20.8, 4.5), (23.7, 9.5))),
)

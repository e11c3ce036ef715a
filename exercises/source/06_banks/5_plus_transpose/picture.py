from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

task(
    (
        Panel(
            "a",
            12,
            12,
            color="a",
            tile=(4, 4),
            parts=(Part(0, 8, 4, 4, text="(I, J)"), Part(8, 0, 4, 4, text="(J, I)")),
            note="each element is loaded once",
        ),
        Panel("tile", 4, 4, x=15.5, y=4, color="muted", shared=True, note="one for all"),
        Panel(
            "c",
            12,
            12,
            x=23,
            color="c",
            tile=(4, 4),
            parts=(Part(0, 8, 4, 4, text="(I, J)"), Part(8, 0, 4, 4, text="(J, I)")),
            note="each element is stored once",
        ),
    ),
    "One block makes both tiles",
    "A block loads the tiles (I, J) and (J, I) of a, which mirror each other, and stores the tiles "
    "(I, J) and (J, I) of c. It has one tile of shared memory.",
    (Arrow((12.3, 6), (14.7, 6)), Arrow((20.3, 6), (22.7, 6))),
)

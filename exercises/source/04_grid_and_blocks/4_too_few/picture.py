from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

OWN = [(row, col) for row in (1, 9, 17) for col in (3, 19, 35)]

task(
    [
        Panel(
            "C, 19 × 37",
            19,
            37,
            tile=(8, 16),
            parts=[
                Part(0, 0, 8, 16, "weak"),
                *(Part(row, col) for row, col in OWN),
                *(Part(row, col, look="focus") for row, col in OWN),
            ],
            note="pale: the whole grid. A step is 16 columns or 8 rows.",
        )
    ],
    "One thread owns every element a grid apart",
    "C has 19 rows and 37 columns, and the grid has only 8 × 16 threads. One thread, framed in "
    "black, owns nine elements: rows 1, 9 and 17 in columns 3, 19 and 35. Steps to the right are "
    "16 columns long, steps down 8 rows.",
    [Arrow((4.3, 1.5), (18.8, 1.5)), Arrow((3.5, 2.3), (3.5, 8.8))],
)

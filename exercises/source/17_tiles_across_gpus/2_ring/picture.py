from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel(
            "ranks downwards, steps to the right", 3, 3, parts=[Part(i, i, 1, 1) for i in range(3)]
        )
    ],
    "Where are the rows of rank 0 in each step?",
    "Three ranks and three steps. The rows of rank 0 are at rank 0 in the first step, at rank 1 in "
    "the second, and at rank 2 in the third.",
)

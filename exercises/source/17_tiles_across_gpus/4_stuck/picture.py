from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel("rank 0: two calls", 1, 6, 0, 0, "a", parts=[Part(0, 0, 1, 4)]),
        Panel("rank 1: one call", 1, 6, 0, 3, "b", parts=[Part(0, 0, 1, 2)]),
    ],
    "What does rank 0 wait for?",
    "The calls of two ranks, along time. Rank 0 makes two calls, rank 1 only one: at its second "
    "call, rank 0 waits for ever.",
)

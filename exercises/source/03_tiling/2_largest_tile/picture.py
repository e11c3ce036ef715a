from tiled_matmul.plots.tasks import Panel, Part, task

T = 4
task(
    [
        Panel("A", T, T, 1, 0, "a", parts=[Part(0, 0, T, T)], note="T × T", shared=True),
        Panel("B", T, T, T + 4, 0, "b", parts=[Part(0, 0, T, T)], note="T × T", shared=True),
        Panel("C", T, T, 2 * T + 7, 0, "c", parts=[Part(0, 0, T, T)], note="T × T", shared=True),
    ],
    "Three tiles share one cache",
    "Three squares of T by T elements side by side, a tile of A, of B and of C. A dashed frame "
    "around each says that it is held in the cache.",
)

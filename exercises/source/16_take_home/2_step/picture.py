from tiled_matmul.plots.tasks import Panel, task

task(
    [
        Panel("input", 4, 3, 0, 0, "muted", note="rows × 3"),
        Panel("weight 0", 3, 6, 6, 0, "b", note="trained"),
        Panel("weight 1", 6, 6, 15, 0, "muted", note="frozen"),
        Panel("weight 2", 6, 2, 24, 0, "b", note="trained"),
    ],
    "A chain of three layers, one of them frozen",
    "An input and three weights side by side. Weights 0 and 2 are trained, weight 1 is frozen.",
)

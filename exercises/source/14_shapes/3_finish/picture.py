from tiled_matmul.plots.tasks import Panel, Part, task

mine = [Part(3, 4, 3, 4)]
panels = [
    Panel(f"parts[{s}]", 7, 10, 13 * s, 0, "muted", (3, 4), [Part(3, 4, 3, 4, "muted")])
    for s in range(3)
]
panels += [
    Panel("bias", 1, 10, 13, 11, "b", (1, 4), [Part(0, 4, 1, 4)]),
    Panel("C", 7, 10, 13, 16, "c", (3, 4), mine, "max(0, sum + bias)"),
]
words = (
    "Three parts of 7 × 10 elements side by side, below them a bias of ten elements, and below "
    "that C. One program's tile is marked at the same place in each part and in C, and its columns "
    "are marked in the bias."
)
task(panels, "One tile: from each part, the bias of its columns", words)

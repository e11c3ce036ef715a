from tiled_matmul.plots.tasks import Panel, Part, task

tiles = [(i, j) for i in range(5) for j in range(i + 1)]
task(
    [
        Panel(
            "C = A·Aᵀ: its tiles and their numbers", 15, 25, 0, 0, "c", (3, 5),
            [
                Part(3 * i, 5 * j, 3, 5, "strong" if 5 <= number < 10 else "weak", str(number))
                for number, (i, j) in enumerate(tiles)
            ],
            "15 of 25 tiles are computed",
        ),
        Panel(
            "c: a stack", 15, 5, 33, 0, "c", (3, 5),
            [Part(3 * x, 0, 3, 5, "strong", str(5 + x)) for x in range(5)],
            "FIRST = 5",
        ),
    ],
    "A launch of five programs with FIRST = 5 computes tiles 5 to 9",
    "C of 5 × 5 tiles. Those on and below the diagonal are numbered row by row: 0; 1, 2; 3, 4, 5; "
    "and so on to 14. Tiles 5 to 9 are marked; beside C they lie below each other in the stack "
    "that a launch with FIRST = 5 stores.",
)  # fmt: skip

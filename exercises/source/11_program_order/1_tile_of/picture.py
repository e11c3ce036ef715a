from tiled_matmul.plots.tasks import Panel, Part, task

first = {(0, 0): 0, (1, 0): 1, (0, 1): 2, (1, 1): 3, (0, 2): 4, (1, 2): 5}
task(
    [
        Panel(
            "row by row", 10, 12, 0, 0, "c", (2, 4),
            [
                Part(2 * i, 4 * j, 2, 4, "weak" if i else "strong", str(3 * i + j))
                for i in range(5)
                for j in range(3)
            ],
        ),
        Panel(
            "groups of 2 rows", 10, 12, 15, 0, "c", (2, 4),
            [
                Part(
                    *(2 * i, 4 * j, 2, 4, "strong" if i < 2 else "weak"),
                    str(first.get((i, j), "?")),
                )
                for i in range(5)
                for j in range(3)
            ],
        ),
    ],
    "Programs 0 to 5 are the first group; the last group has one row",
    "C of 5 × 3 tiles twice. Left, the programs are numbered row by row. Right, the first two rows "
    "are a group: programs 0 and 1 in the first column, 2 and 3 in the second, 4 and 5 in the "
    "third. The numbers of the other tiles are left open.",
)  # fmt: skip

from tiled_matmul.plots.tasks import Panel, Part, task

blocks = [(0, 16), (16, 16), (32, 16), (48, 2)]
task(
    [
        Panel(
            "A: M × N", 10, 50, 0, 0, "a", (4, 16),
            [
                Part(4, left, 4, wide, "weak", str(i) if wide > 4 else "")
                for i, (left, wide) in enumerate(blocks)
            ],
            "first pass: block 0, 1, 2, 3, keeping top and sum of each row",
        ),
        Panel(
            "C: M × N", 10, 50, 0, 18, "c", (4, 16),
            [Part(4, left, 4, wide) for left, wide in blocks] + [Part(4, 0, 4, 50, "focus")],
            "second pass: load each block of A again, and store that of C",
        ),
    ],
    "Program 1 owns rows 4 to 7, which are longer than one block",
    "A and C, each 10 × 50, divided into blocks of 4 × 16. The four blocks of rows 4 to 7 are "
    "marked in A, where a first pass loads them, and in C, where a second pass stores them. The "
    "last block has 2 columns.",
)  # fmt: skip

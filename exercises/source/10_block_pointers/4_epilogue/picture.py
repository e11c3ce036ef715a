from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel(
            "A: M × K", 20, 40, 0, 58, "a", (16, 16),
            [Part(0, 0, 16, 40, "weak"), Part(0, 16, 16, 16)],
        ),
        Panel(
            "B: K × N", 40, 35, 46, 0, "b", (16, 16),
            [Part(0, 16, 40, 16, "weak"), Part(16, 16, 16, 16)],
        ),
        Panel("bias: N", 2, 35, 46, 48, "muted", (2, 16), [Part(0, 16, 2, 16, "muted")]),
        Panel(
            "C = relu(A·B + bias)", 20, 35, 46, 58, "c", (16, 16),
            [Part(0, 16, 16, 16), Part(0, 16, 16, 16, "focus")],
        ),
    ],
    "Program (1, 0) adds elements 16 to 31 of the bias to every row of its tile",
    "A lies left of C, B above it, and between B and C the bias, a single row as wide as C. Marked "
    "are the strips of A and B of one program, the 16 elements of the bias above its tile, and the "
    "tile of C.",
)  # fmt: skip

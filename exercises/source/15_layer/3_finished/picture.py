from tiled_matmul.plots.tasks import Panel, Part, task

MARKED = Part(0, 16, 16, 16), Part(0, 16, 16, 16, "focus")
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
        Panel("C: M × N", 20, 35, 46, 58, "c", (16, 16), MARKED),
        Panel(
            "residual: M × N", 20, 35, 87, 58, "muted", (16, 16), [Part(0, 16, 16, 16, "muted")],
        ),
    ],
    "Program (1, 0) needs 16 elements of the bias and one tile of the residual",
    "A lies left of C, B above it, between B and C the bias, a single row as wide as C, and right "
    "of C the residual, as large as C. Marked are the strips of A and B of one program, the 16 "
    "elements of the bias above its tile, the tile of C, and the same tile of the residual.",
)  # fmt: skip

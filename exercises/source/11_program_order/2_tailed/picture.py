from tiled_matmul.plots.tasks import Panel, Part, task

task(
    [
        Panel(
            "A: 20 × 40", 20, 48, 0, 56, "a", (16, 16),
            [Part(0, 32, 16, 8), Part(0, 40, 16, 8, "fault")],
        ),
        Panel(
            "B: 40 × 35", 48, 35, 52, 0, "b", (16, 16),
            [Part(32, 16, 8, 16), Part(40, 16, 8, 16, "fault")],
        ),
        Panel("C: 20 × 35", 20, 35, 52, 56, "c", (16, 16), [Part(0, 16, 16, 16, "focus")]),
    ],
    "The third step loads eight columns and eight rows that do not exist",
    "A lies left of C, B above it, drawn with 48 columns and rows along K although they have 40. "
    "Of the tiles that one program loads in its third step along K, the half beyond K is marked "
    "as a fault.",
)  # fmt: skip

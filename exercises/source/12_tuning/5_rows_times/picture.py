from tiled_matmul.plots.tasks import Panel, Part, task

looks = [(0, 16, "weak"), (16, 16, "strong"), (32, 16, "weak"), (48, 2, "weak")]
x_parts = [Part(0, left, 1, wide, look) for left, wide, look in looks]
a_parts = [Part(8, left, 8, wide, look) for left, wide, look in looks]
note = "tile by tile along K; tiles are cut at both edges"
panels = [
    Panel("x", 1, 50, 0, 0, "b", (1, 16), x_parts),
    Panel("A: M × K", 20, 50, 0, 7, "a", (8, 16), [*a_parts, Part(8, 16, 8, 16, "focus")], note),
    Panel("c", 20, 1, 54, 7, "c", (8, 1), [Part(8, 0, 8, 1)]),
]
words = (
    "A is 20 × 50, in tiles of 8 × 16. Above it lies x, 50 elements, and beside it c, 20. "
    "Marked are the four tiles of rows 8 to 15 of A, all parts of x, and elements 8 to 15 of c. "
    "The second tile is framed: its columns belong to the part of x above it."
)
task(panels, "Program 1 loads rows 8 to 15 of A once, and all of x", words)

from tiled_matmul.plots.tasks import Panel, Part, task

mine = (1, 4)  # the blocks of K of program z = 1, of three
of_a = [Part(2, 3 * block, 2, 3, text=str(block)) for block in mine]
of_b = [Part(3 * block, 2, 3, 2, text=str(block)) for block in mine]
panels = [
    Panel("B", 17, 6, 20, 0, "b", (3, 2), of_b),
    Panel("A", 6, 17, 0, 20, "a", (2, 3), of_a, "numbers: blocks of K"),
]
for z in range(3):
    parts = [Part(2, 2, 2, 2)] if z == 1 else []
    panels.append(Panel(f"parts[{z}]", 6, 6, 20 + 9 * z, 20, "c", (2, 2), parts))
words = (
    "A is 6 × 17 and B 17 × 6, with six blocks along K, of which the last one is not complete. "
    "Program (1, 1, 1) multiplies blocks 1 and 4 of a row of tiles of A and a column of tiles of "
    "B, and stores the middle tile of the second of three parts."
)
task(panels, "Program (1, 1, 1) of three: every third block of K", words)

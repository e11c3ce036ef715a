from tiled_matmul.plots.tasks import Panel, Part, task

panels = []
for stage in range(3):
    y = 6 * stage
    of_a, of_b = [Part(0, 0, 4, 4, "weak")], [Part(0, 0, 4, 8, "weak")]
    panels.append(Panel(f"A, stage {stage}", 4, 4, 0, y, "a", None, of_a, shared=True))
    panels.append(Panel(f"B, stage {stage}", 4, 8, 7, y, "b", None, of_b, shared=True))
sums = [Part(0, 0, 4, 8, "weak"), Part(1, 2, 1, 2, "focus")]
note = "black: those of one thread"
panels.append(Panel("sums, in registers", 4, 8, 19, 6, "c", (1, 2), sums, note))
words = (
    "Three tiles of A and three tiles of B, one of each for every stage, lie in shared memory. The "
    "sums of the tile of C lie in registers, and each thread holds a few of them."
)
task(panels, "Stages take shared memory, sums take registers", words)

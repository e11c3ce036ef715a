from tiled_matmul.plots.tasks import Panel, Part, task

read = [Part(2, 0, 2, 4), Part(0, 0, 8, 4, "weak")]
panels = [
    Panel("B", 4, 10, 8, 0, "b", None, [Part(0, 0, 4, 10)], "depth × columns", shared=True),
    Panel("A", 8, 4, 0, 8, "a", (2, 4), read, "rows × depth", shared=True),
    Panel("sums", 8, 10, 8, 8, "c", (2, 10), [Part(2, 0, 2, 10)], "in registers"),
]
words = (
    "A tile of A is divided into four strips of 64 rows. One wgmma multiplies one strip of A by "
    "the whole tile of B and adds to one strip of the sums. Both tiles lie in shared memory."
)
task(panels, "One wgmma: 64 rows of A, by the whole tile of B", words)

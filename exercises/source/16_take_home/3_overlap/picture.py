from tiled_matmul.plots.tasks import Panel, Part, task

rows = [Part(0, 5 * row, 1, 3) for row in range(3)]
other = [Part(0, 9, 1, 8)]
task(
    [
        Panel("a: 3 × 3, strides (5, 1)", 1, 20, 0, 0, "a", parts=rows),
        Panel("b: 1 × 8", 1, 20, 0, 4, "b", parts=other),
    ],
    "From the first element to the last, gaps included",
    "The same 20 elements of memory twice. Matrix a has elements 0 to 2, 5 to 7 and 10 to 12, so "
    "its span is 0 to 12. Matrix b has elements 9 to 16. Elements 9 to 12 lie in both spans.",
)

from tiled_matmul.plots.tasks import Panel, task

m, n, k = 4, 7, 5
task(
    [
        Panel("A", m, k, 0, k + 2, "a", note="read once"),
        Panel("B", k, n, k + 2, 0, "b", note="read once"),
        Panel("C", m, n, k + 2, k + 2, "c", note="written once"),
    ],
    "No program moves less than each element of A, B and C once",
    "A with 4 rows and 5 columns, to the left of C with 4 rows and 7 columns; above C lies B with "
    "5 rows and 7 columns.",
)

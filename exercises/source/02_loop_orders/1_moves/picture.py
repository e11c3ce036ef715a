from tiled_matmul.plots.tasks import Panel, Part, task

m, n, k, i, j, p = 5, 7, 3, 2, 4, 1
task(
    [
        Panel("A, m×k", m, k, 0, k + 2.5, "a", parts=[Part(i, p), Part(i, p, look="focus")]),
        Panel("B, k×n", k, n, k + 2.5, 0, "b", parts=[Part(p, j), Part(p, j, look="focus")]),
        Panel("C, m×n", m, n, k + 2.5, k + 2.5, "c", parts=[Part(i, j), Part(i, j, look="focus")]),
    ],
    "One iteration uses three elements: where in memory are those of the next one?",
    "A with 5 rows and 3 columns, B with 3 rows and 7 columns above C, which has 5 rows and 7 "
    "columns. The elements A[2, 1], B[1, 4] and C[2, 4] are in colour.",
)

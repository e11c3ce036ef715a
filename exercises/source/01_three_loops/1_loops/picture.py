from tiled_matmul.plots.tasks import Panel, Part, task

M, N, K, i, j = 3, 6, 5, 1, 3
task(
    [
        Panel("A", M, K, 0, K + 2, "a", parts=[Part(i, 0, 1, K)]),
        Panel("B", K, N, K + 2, 0, "b", parts=[Part(0, j, K, 1)]),
        Panel("C", M, N, K + 2, K + 2, "c", parts=[Part(i, j), Part(i, j, look="focus")]),
    ],
    "Row 1 of A and column 3 of B make C[1, 3]",
    "A with 3 rows and 5 columns lies to the left of C with 3 rows and 6 columns, B with 5 rows "
    "and 6 columns above C. Row 1 of A, column 3 of B and C[1, 3] are in colour.",
)

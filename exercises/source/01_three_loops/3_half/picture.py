from tiled_matmul.plots.tasks import Panel, Part, task

M, K, i, j = 6, 4, 4, 1
c_parts = [Part(row, 0, 1, row + 1, "weak") for row in range(M)]
ends = [Part(i, j, look="focus"), Part(j, i, look="focus")]
task(
    [
        Panel("A", M, K, 0, 0, "a", parts=[Part(i, 0, 1, K), Part(j, 0, 1, K, "weak")]),
        Panel("C = A · Aᵀ", M, M, K + 3, 0, "c", parts=[*c_parts, *ends]),
    ],
    "Rows 4 and 1 of A make C[4, 1], and C[1, 4] too",
    "On the left A, 6 rows of 4 elements, with rows 4 and 1 in colour. On the right C, 6 by 6: its "
    "lower triangle with the diagonal is in colour, and C[4, 1] and C[1, 4] have black frames.",
)

from tiled_matmul.plots.tasks import Panel, Part, task

K, M, N, k, i = 5, 6, 8, 2, 3
task(
    [
        Panel("A, stored K×M", K, M, 0, 0, "a", parts=[Part(0, i, K, 1, "weak"), Part(k, i)]),
        Panel("B", K, N, M + 3, 0, "b", (1, 4), [Part(k, 0, 1, N)]),
        Panel("C = Aᵀ · B", M, N, M + 3, K + 3, "c", (1, 4), [Part(i, 0, 1, N)]),
    ],
    "Row i of C needs column i of A, and all of B",
    "A with 5 rows and 6 columns; its column 3 is pale, and its element [2, 3] in full colour. To "
    "the right of it B with row 2 in colour, and below B the matrix C with row 3 in colour. "
    "Heavier lines divide the rows of B and C into lines of 4 elements.",
)

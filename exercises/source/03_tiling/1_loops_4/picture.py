from tiled_matmul.plots.tasks import Panel, Part, task

T, M, N, K, i, j, k = 4, 6, 11, 9, 0, 4, 4
gap = 2.5
task(
    [
        Panel("A", M, K, 0, K + gap, "a", (T, T), [Part(i, k, T, T)]),
        Panel("B", K, N, K + gap, 0, "b", (T, T), [Part(k, j, T, T)]),
        Panel("C", M, N, K + gap, K + gap, "c", (T, T), [Part(i, j, T, T)]),
    ],
    "One step multiplies two tiles; the tiles at the edges are shorter",
    "A with 6 rows and 9 columns, B with 9 rows and 11 columns and C with 6 rows and 11 columns "
    "are cut in tiles of 4 by 4, with shorter ones at the edges. One tile of each is in colour.",
)

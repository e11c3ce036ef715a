from tiled_matmul.plots.tasks import Arrow, Panel, Part, task

E, G = 4, 5  # the edge of a tile, and a gap
A, B, C = (0, 2 * E + G), (3 * E + G, 0), (3 * E + G, 2 * E + G)
task(
    [
        Panel("A", 2 * E, 3 * E, *A, "a", (E, E), [Part(0, 2 * E, E, E)]),
        Panel("B", 3 * E, 2 * E, C[0], -E, "b", (E, E), [Part(2 * E, 0, E, E)]),
        Panel("C", 2 * E, 2 * E, *C, "c", (E, E), [Part(0, 0, E, E), Part(0, E, E, E, "focus")]),
    ],
    "At the last k of a tile of C: which tiles are at hand for the next one?",
    "A is to the left of C, B above it, all in tiles of 4 by 4. The last tile of A's first row of "
    "tiles, the lowest one of B's first column and the first tile of C are in colour. The next one "
    "of C has a black frame, and an arrow shows the walk along K in A.",
    [
        Arrow((0.5 * E, C[1] + 0.5 * E), (2.4 * E, C[1] + 0.5 * E), "k"),
    ],
)

"""07.2, traffic, predicted: what is asked for, and how an answer is judged."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    VALUES,
    Call,
    Exercise,
    Slip,
    cover,
)
from tiled_matmul.grader.spec import loads_of_tiles as global_loads


def _draw(rng) -> tuple:
    # Few enough blocks to go through them one by one.
    most, times = ((300, 1), (20_000, 64))[int(rng.integers(2))]
    m, n, k = (int(size) for size in rng.integers(1, most, 3))
    edges = rng.choice((4, 8, 16, 32, 48), 2, replace=False)
    rows, columns = (times * int(edge) for edge in edges)
    return m, n, k, rows, columns


EXERCISE = Exercise(
    name="07.2",
    title="traffic, predicted",
    points=3,
    entry="global_loads",
    parameters=("m", "n", "k", "rows", "columns"),
    kind="values",
    rules=VALUES,
    answer=global_loads,
    cases=(
        Call((64, 64, 64, 64, 64)),
        Call((64, 64, 64, 16, 16)),
        Call((128, 128, 16, 128, 64)),
        Call((20, 35, 9, 64, 64)),
        Call((100, 70, 20, 64, 32)),
        Call((40_001, 50_001, 3, 20_000, 25_000)),  # a tile more for one row, and one column
        *(Call(draw=_draw) for _ in range(6)),
    ),
    slips=(
        Slip(
            lambda m, n, k, rows, columns: 2 * m * n * k,
            "naive",
            "That is what it takes with no tiles at all.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * (m * cover(n, rows) + n * cover(m, columns)),
            "axes",
            "Rows and columns are exchanged: A is loaded once for each column of tiles, and how "
            "many of those there are, the tile's columns say.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * (m * (n // columns) + n * (m // rows)),
            "rounding",
            "The tiles at the edges are missing: where a tile does not divide C there is one more.",
        ),
        Slip(
            lambda m, n, k, rows, columns: (
                k * (rows + columns) * cover(m, rows) * cover(n, columns)
            ),
            "beyond",
            "What lies beyond the edge is not loaded: there the guard puts a zero.",
        ),
        Slip(
            lambda m, n, k, rows, columns: m * n * k / rows + m * n * k / columns,
            "rounding",
            "Tiles come whole: count them, rounded up.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * (rows + columns),
            "one block",
            "That is what one block loads.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * m * cover(n, columns),
            "half",
            "That is A's part. B's is missing.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * n * cover(m, rows),
            "half",
            "That is B's part. A's is missing.",
        ),
        Slip(
            lambda m, n, k, rows, columns: m * cover(n, columns) + n * cover(m, rows),
            "one step",
            "That is for one step of k.",
        ),
        Slip(
            lambda m, n, k, rows, columns: m * k + k * n,
            "once",
            "That is each matrix once. But each block loads for itself, and blocks side by side "
            "load the same rows of A.",
        ),
    ),
    hints={
        **{"naive": 1, "axes": 2, "rounding": 3, "beyond": 3, "one block": 1, "half": 2, "once": 1},
        **{"one step": 2, "nothing": 1, "error": 2, "other": 1},
    },
)

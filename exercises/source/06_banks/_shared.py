"""What the kernels of this chapter that move tiles have in common: sectors, rows and launches."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case, cover

EDGE, ROWS = 32, 8
SECTOR = 8  # elements of four bytes


def sectors_of_rows(rows: int, columns: int, edge: int, real: int | None = None) -> int:
    """Return how many sectors a rows × columns array of 4-byte elements takes, `edge` at a time.

    Each request is a piece of a row, at most `edge` long. Rows from `real` on stand for the last
    one that is there: a load may be clamped to it.
    """
    last = (rows if real is None else real) - 1
    total = 0
    for row in range(rows):
        begin = min(row, last) * columns
        for left in range(0, columns, edge):
            right = min(left + edge, columns) - 1
            total += (begin + right) // SECTOR - (begin + left) // SECTOR + 1
    return total


def rows_of(case: Case) -> int:
    """Return how many rows of threads a block has in this case."""
    return case.given.get("ROWS", ROWS)


def launch(case: Case) -> tuple:
    """Return a grid with a block for each tile of A, and blocks of EDGE × ROWS threads."""
    return (cover(case.n, EDGE), cover(case.m, EDGE)), (EDGE, rows_of(case))

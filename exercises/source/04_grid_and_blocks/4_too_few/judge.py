"""04.4, too few threads: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tiled_matmul.grader.spec import CUDA, Case, Count, Exercise, Slip, cover, each_its_own

from .._shared import A_GUARD, ABC, FIRST_TWICE, NO_BARRIER, STORED_ONCE, WHOLE_NUMBERS

GRID, BLOCK = (2, 2), (8, 4)  # as (x, y)
SECTOR = 8  # floats


def _few(case: Case) -> tuple:
    return case.given.get("GRID", GRID), case.given.get("BLOCK", BLOCK)


def _warps(case: Case) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (rows, columns) of what each warp owns at a time, where a step is the whole grid."""
    _, (x, y) = _few(case)
    thread = np.arange(x * y)
    for top in range(0, case.m, y):
        for left in range(0, case.n, x):
            row, col = top + thread // x, left + thread % x
            for first in range(0, x * y, 32):
                warp = slice(first, first + 32)
                inside = (row[warp] < case.m) & (col[warp] < case.n)
                if inside.any():
                    yield row[warp][inside], col[warp][inside]


def load_sectors(case: Case) -> int:
    """Return how many sectors the loads ask for where a step is the whole grid."""
    total = 0
    for row, col in _warps(case):
        for k in range(case.k):
            total += np.unique((row * case.k + k) // SECTOR).size
            total += np.unique((k * case.n + col) // SECTOR).size
    return total


def _most_sectors(case: Case) -> int:
    """Return twice as many, with a sector for each row of A even where two rows share one."""
    total = 0
    for row, col in _warps(case):
        for k in range(case.k):
            total += np.unique(row).size + np.unique((k * case.n + col) // SECTOR).size
    return 2 * total


def _extent(case: Case) -> tuple[int, int]:
    """Return how many threads the grid has along y and x."""
    (across, down), (x, y) = _few(case)
    return down * y, across * x


def _own(case: Case) -> int:
    """Return how many elements of C a thread has at most, whichever axis of the grid goes down C.

    Where x goes down, another count says what is wrong with that.
    """
    rows, columns = _extent(case)
    swapped = cover(case.m, columns) * cover(case.n, rows)
    return max(cover(case.m, rows) * cover(case.n, columns), swapped)


def _carried(anew: bool):
    """Return what comes of a sum that goes on from element to element, or begins in each row."""

    def made(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        rows, columns = _extent(case)
        right, c = a @ b, np.zeros((case.m, case.n))
        sums = np.zeros((rows, columns))
        for top in range(0, case.m, rows):
            if anew:
                sums[:] = 0
            for left in range(0, case.n, columns):
                part = right[top : top + rows, left : left + columns]
                sums[: part.shape[0], : part.shape[1]] += part
                c[top : top + rows, left : left + columns] = sums[: part.shape[0], : part.shape[1]]
        return c

    return made


CARRIED = (
    "A thread's later elements contain the sums of its earlier ones: the sum has to begin at zero "
    "for each element, within both loops."
)

EXERCISE = Exercise(
    name="04.4",
    title="too few threads",
    points=4,
    entry="strided",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    launch=_few,
    cases=(
        Case(19, 37, 9),
        Case(11, 50, 2, draw="normal", order="shuffle", given={"GRID": (1, 1)}),
        Case(38, 9, 3, order="reverse", given={"GRID": (3, 1), "BLOCK": (4, 2)}),
        # Along one axis the grid is larger than C, along the other far smaller.
        Case(3, 131, 2, draw="normal", given={"GRID": (2, 3)}),
        Case(129, 3, 2, order="reverse", given={"GRID": (3, 2)}),
        # More than one warp a block; sizes that the grid divides; K is 1, and far larger than both.
        Case(24, 32, 1, draw="wide", given={"GRID": (1, 2), "BLOCK": (16, 4)}),
        Case(36, 20, 9, given={"GRID": (1, 2), "BLOCK": (16, 2)}),
        Case(4, 200, 9, draw="normal", given={"GRID": (1, 1), "BLOCK": (16, 2)}),
        Case(2, 3, 70, draw="normal"),
        Case(23, 21, 2, draw="normal", given={"GRID": (2, 3), "BLOCK": (5, 3)}),
        Case(267, 2, 1, given={"GRID": (1, 2)}),
        Case(2, 269, 1, given={"GRID": (2, 1)}),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"GRID": (8, 8), "BLOCK": (16, 16)}),),
    slips=(
        FIRST_TWICE,
        Slip(_carried(False), "carried", CARRIED),
        Slip(_carried(True), "carried", CARRIED),
        WHOLE_NUMBERS,
    ),
    counts=(
        NO_BARRIER,
        Count(
            "global loads",
            lambda case: 2 * case.m * case.n * case.k,
            "C is right, but for an element a thread loads more than a row of A and a column of B. "
            "Keep the sum in a variable of the thread, and compute each element once.",
            "sum in C",
        ),
        STORED_ONCE,
        *each_its_own(_own),
        Count(
            "global load sectors",
            _most_sectors,
            "C is right, but neighbours in x own elements that lie apart: a warp's loads take a "
            "sector for each lane. A thread's next element is not the next one in the row, which "
            "belongs to its neighbour; it is one whole grid further.",
            "sectors",
            best=load_sectors,
        ),
    ),
    remedies={
        "out of bounds": A_GUARD,
        "same element": "Two threads have the same element of c: a thread's next element has to be "
        "one whole grid further, `gridDim` times `blockDim` along each axis.",
    },
    hints={
        **{"out of bounds": 2, "negative index": 2, "race": 1, "stale": 1, "same element": 1},
        **{"part of k": 3, "sum in C": 3, "error": 3, "timeout": 2, "other": 2, "carried": 3},
        **{"first twice": 3, "operation": 3, "no store": 3, "on top": 3, "library": 3},
        **{"transposed": 3, "unbound": 3, "guard": 2, "sectors": 1, "swapped indices": 3},
    },
)

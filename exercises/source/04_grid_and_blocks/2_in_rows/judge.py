"""04.2, x or y: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import CUDA, Case, Count, Exercise, each_its_own

from .._shared import A_GUARD, ABC, FIRST_TWICE, NO_BARRIER, STORED_ONCE

EDGE = 16
SECTOR = 8  # floats


def _both_ways(case: Case) -> tuple:
    """A grid that covers C whichever of its axes is x: the guard sends the rest home."""
    edge = -(-max(case.m, case.n) // EDGE)
    return (edge, edge), (EDGE, EDGE)


def _different(row: np.ndarray, col: np.ndarray, width: int) -> int:
    """How many sectors these elements of a matrix of float32 with rows of `width` lie in."""
    return np.unique((row * width + col) // SECTOR).size


def _warps(case: Case):
    """Yield (rows, columns) of the elements of C of each warp that has any; x is the column."""
    lane = np.arange(32)
    for top in range(0, case.m, 2):  # two rows of 16 threads
        for left in range(0, case.n, EDGE):
            row, col = top + lane // EDGE, left + lane % EDGE
            inside = (row < case.m) & (col < case.n)
            yield row[inside], col[inside]


def load_sectors(case: Case) -> int:
    """Sectors that all loads ask for where x is the column, in blocks of 16 × 16."""
    total = 0
    for row, col in _warps(case):
        for k in range(case.k):
            total += _different(row, np.full_like(row, k), case.k)
            total += _different(np.full_like(col, k), col, case.n)
    return total


def store_sectors(case: Case) -> int:
    """Sectors of C that the stores ask for in that mapping."""
    return sum(_different(row, col, case.n) for row, col in _warps(case))


EXERCISE = Exercise(
    name="04.2",
    title="x or y",
    points=2,
    entry="in_rows",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    launch=_both_ways,
    cases=(
        Case(32, 32, 8),
        Case(37, 18, 5, draw="normal", order="shuffle"),
        Case(261, 2, 1, draw="normal"),
        Case(3, 49, 2, order="reverse"),
        Case(2, 3, 70, draw="normal"),
    ),
    large=(Case(517, 389, 301, draw="normal"),),
    slips=(FIRST_TWICE,),
    counts=(
        NO_BARRIER,
        Count(
            "global load sectors",
            load_sectors,
            "C is right, and its warps still read down a column: lanes 0 to 15 differ in x, and "
            "neighbours in x load from different rows, each out of a sector of its own.",
            "sectors",
            share=0,
            best=load_sectors,
        ),
        STORED_ONCE,
        *each_its_own(),
        Count(
            "global store sectors",
            store_sectors,
            "C is right and the loads are in rows, but the stores of C are not.",
            "sectors",
            best=store_sectors,
        ),
    ),
    remedies={"out of bounds": A_GUARD},
    hints={
        **{"sectors": 1, "transposed": 2, "out of bounds": 2, "stale": 2, "error": 3, "other": 2},
        **{"same element": 3, "swapped indices": 2, "first twice": 3, "sum in C": 3},
    },
)

"""04_grid_and_blocks: a naive kernel for any sizes, and one whose warps read in rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import CUDA, ONCE, Case, Count, Exercise, Slip

ABC = ("a", "b", "c")
BLOCK = (8, 4)  # of 04.1, as (x, y): what confuses the two does not come out right by luck
EDGE = 16
SECTOR = 8  # floats


def _tall(case: Case) -> tuple:
    x, y = block = case.given.get("BLOCK", BLOCK)
    return (-(-case.n // x), -(-case.m // y)), block


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


def _first_twice(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b + np.outer(a[:, 0], b[0])


FIRST_TWICE = Slip(
    _first_twice,
    "first twice",
    "The product of k = 0 is in each sum twice: the sum begins with it, and then the loop begins "
    "at k = 0 as well. Begin one with zero, or the other at 1.",
)

STORED_ONCE = replace(
    ONCE,
    message="C is right, but it is written again and again. Keep the sum in a variable of the "
    "thread, and store it once, behind the loop over k.",
    diagnosis="sum in C",
)

A_GUARD = (
    "Guard the access with the array's own shape, each index with its own axis. If there is a "
    "guard, it lets this through: it asks with <, of both axes, and joins the two with `and`."
)

GUARD = Exercise(
    name="04.1",
    title="the guard",
    points=3,
    entry="guarded",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    launch=_tall,
    cases=(
        Case(5, 10, 7),
        Case(8, 16, 4, hidden=True),
        Case(9, 5, 3, draw="normal", hidden=True, order="reverse"),
        Case(3, 17, 11, draw="normal", order="shuffle", given={"BLOCK": (4, 2)}),
        Case(1, 1, 1, draw="normal", hidden=True),
    ),
    large=(Case(517, 389, 301, draw="normal"),),
    slips=(
        FIRST_TWICE,
        Slip(
            lambda case, a, b: a.sum(axis=1)[:, None] + b.sum(axis=0),
            "operation",
            "The sums add a[row, k] and b[k, col]; a product multiplies the two.",
        ),
    ),
    counts=(
        Count(
            "global loads",
            lambda case: 2 * case.m * case.n * case.k,
            "C is right, but a thread loads more than its row of A and its column of B. Keep the "
            "sum in a variable of the thread, and never read C.",
            "sum in C",
        ),
        STORED_ONCE,
    ),
    remedies={"out of bounds": A_GUARD},
    hints={
        **{"out of bounds": 2, "negative index": 1, "race": 1, "stale": 1, "never written": 1},
        **{"transposed": 1, "part of k": 3, "sum in C": 3, "error": 3, "timeout": 3, "other": 2},
        **{"on top": 3, "swapped indices": 3, "out of bounds of c": 2, "along K": 3},
        **{"restarted": 3, "first twice": 3, "guard": 2, "no store": 3, "library": 3, "clamped": 2},
        **{"operation": 3, "unbound": 3},
    },
)

IN_ROWS = Exercise(
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
        Case(20, 35, 9, hidden=True, order="reverse"),
        Case(37, 18, 5, draw="normal", order="shuffle"),
        Case(5, 40, 3, hidden=True),
    ),
    large=(Case(517, 389, 301, draw="normal"),),
    slips=(FIRST_TWICE,),
    counts=(
        Count(
            "global load sectors",
            load_sectors,
            "C is right, and its warps still read under each other: lanes 0 to 15 differ in x, and "
            "neighbours in x load from different rows, each out of a sector of its own.",
            "sectors",
            share=0,
        ),
        STORED_ONCE,
        Count(
            "global store sectors",
            store_sectors,
            "C is right and the loads are in rows, but the stores of C are not.",
            "sectors",
        ),
    ),
    remedies={"out of bounds": A_GUARD},
    hints={
        **{"sectors": 1, "transposed": 2, "out of bounds": 2, "stale": 2, "error": 3, "other": 2},
        **{"same element": 3, "swapped indices": 2, "first twice": 3, "sum in C": 3},
    },
)

EXERCISES = (GUARD, IN_ROWS)

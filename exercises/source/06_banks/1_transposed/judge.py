"""06.1, a tile stored down its columns: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Count,
    Exercise,
    Limits,
    each_its_own,
    loads_of_whole_tiles,
    square_blocks,
    tiled_cases,
)

TILE = 16
SECTOR = 8  # floats

_launch = square_blocks("TILE", TILE)


def _different(row: np.ndarray, col: np.ndarray, pitch: int) -> int:
    return np.unique((row * pitch + col) // SECTOR).size


def loads(case: Case) -> int:
    """Return how many elements whole tiles load: each of A once for each tile column of C, …"""
    return loads_of_whole_tiles(case, TILE, TILE, TILE)


def load_sectors(case: Case) -> int:
    """Sectors that the loads ask for where neighbours in x are neighbours in memory."""
    lane = np.arange(32)
    x, pair = lane % TILE, lane // TILE
    total = 0
    for start in range(0, case.k, TILE):
        for top in range(0, case.m, TILE):
            for y in range(0, TILE, 2):
                row, col = top + x, start + y + pair
                ok = (row < case.m) & (col < case.k)
                blocks = -(-case.n // TILE)
                total += blocks * _different(col[ok], row[ok], case.m)  # A lies by columns
        for left in range(0, case.n, TILE):
            for y in range(0, TILE, 2):
                row, col = start + y + pair, left + x
                ok = (row < case.k) & (col < case.n)
                blocks = -(-case.m // TILE)
                total += blocks * _different(row[ok], col[ok], case.n)
    return total


def few_conflicts(case: Case) -> int:
    """Two for each store of a warp to one of the tiles."""
    (across, down), _ = _launch(case)
    return 2 * across * down * -(-case.k // TILE) * TILE * TILE // 32


EXERCISE = Exercise(
    name="06.1",
    title="a tile stored down its columns",
    points=3,
    entry="transposed",
    parameters=("a", "b", "c"),
    kind="cuda",
    rules=CUDA,
    limits=Limits(cost=3),
    tile=TILE,
    given={"TILE": TILE},
    launch=_launch,
    cases=(
        Case(16, 16, 16, by_columns="a"),
        Case(33, 17, 20, draw="normal", by_columns="a", order="shuffle"),
        *tiled_cases(TILE, deep=1, far_k=300, by_columns="a"),
    ),
    large=(Case(517, 389, 301, draw="normal", by_columns="a"),),
    counts=(
        Count(
            "global loads",
            loads,
            "C is right and there is no conflict where there is no shared memory, but the threads "
            "of a block have to share what they load.",
            "sharing",
            share=0,
        ),
        Count(
            "bank conflicts",
            few_conflicts,
            "C is right, but in some access several lanes want different words of one bank. "
            "In which banks do the sixteen rows of A's tile begin? In too few different ones.",
            "conflicts",
            share=0,
        ),
        Count(
            "bank conflicts",
            lambda case: 0,
            "C is right and most of the conflicts are gone, but some lanes still meet in a bank. A "
            "warp is two rows of the block: take the 32 words of a store, modulo 32, for each of "
            "the two tiles.",
            "few conflicts",
            share=0,
            best=lambda case: 0,
        ),
        Count(
            "global load sectors",
            load_sectors,
            "C is right and without a conflict, but the loads from global memory paid for it: A "
            "lies by columns, so neighbours in x have to load from neighbouring rows of A.",
            "sectors",
            best=load_sectors,
        ),
        ONCE,
        *each_its_own(),
        NO_NEEDLESS_BARRIERS,
    ),
    hints={
        **{
            "conflicts": 1,
            "few conflicts": 2,
            "sectors": 1,
            "sharing": 1,
            "race": 3,
            "uninitialised read": 3,
        },
        **{"uninitialised read": 3, "out of bounds": 3, "divergent barrier": 3, "error": 3},
        "other": 3,
    },
)

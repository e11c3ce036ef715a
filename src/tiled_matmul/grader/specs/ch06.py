"""06_banks: a transposed tile without bank conflicts, and how many wavefronts a stride takes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    VALUES,
    Call,
    Case,
    Count,
    Exercise,
    Slip,
    loads_of_tiles,
    square_blocks,
)

TILE = 16
SECTOR = 8  # floats
BANKS = 32


_launch = square_blocks("TILE", TILE)


def _different(row: np.ndarray, col: np.ndarray, pitch: int) -> int:
    return np.unique((row * pitch + col) // SECTOR).size


def loads(case: Case) -> int:
    """How many elements the tiles load: each of A once for each tile column of C, …"""
    return loads_of_tiles(case.m, case.n, case.k, TILE, TILE)


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


TRANSPOSED = Exercise(
    name="06.1",
    title="a tile stored down its columns",
    points=3,
    entry="transposed",
    parameters=("a", "b", "c"),
    kind="cuda",
    rules=CUDA,
    tile=TILE,
    given={"TILE": TILE},
    launch=_launch,
    cases=(
        Case(16, 16, 16, by_columns="a"),
        Case(20, 35, 9, hidden=True, by_columns="a", order="reverse"),
        Case(33, 17, 20, draw="normal", by_columns="a", order="shuffle"),
        Case(5, 6, 34, hidden=True, by_columns="a"),
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
            "C is right, but in some access eight lanes or so want different words of one bank. "
            "The rows of the tile of A begin in two banks only.",
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
        ),
        Count(
            "global load sectors",
            load_sectors,
            "C is right and without a conflict, but the loads from global memory paid for it: A "
            "lies by columns, so neighbours in x have to load from neighbouring rows of A.",
            "sectors",
        ),
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


def wavefronts(stride: int, size: int) -> int:
    """Wavefronts of a load in which lane t wants element t · stride, of `size` bytes: 4 or 8."""
    if stride == 0:
        return 1
    parts = size // 4
    return parts * math.gcd(stride, BANKS // parts)


def _any(rng: np.random.Generator) -> tuple:
    return int(rng.integers(1, 200)), int(rng.choice((4, 8)))


def _even(rng: np.random.Generator) -> tuple:
    return int(rng.integers(1, 12) << rng.integers(1, 5)), int(rng.choice((4, 8)))


WAYS = Exercise(
    name="06.2",
    title="how many ways",
    points=3,
    entry="wavefronts",
    parameters=("stride", "size"),
    kind="values",
    rules=replace(
        VALUES,
        names=VALUES.names | {"set", "list", "tuple", "sorted"},
        attributes=VALUES.attributes | {"math.gcd"},
        members=VALUES.members | {"append", "add", "count"},
    ),
    answer=wavefronts,
    cases=(
        *(Call((stride, 4)) for stride in (1, 2, 3, 16, 32, 33, 0)),
        *(Call((stride, 8)) for stride in (1, 3, 8, 32, 0)),
        *(Call((stride, 8), hidden=True) for stride in (2, 16, 17)),
        *(Call(draw=draw) for draw in (_any, _even) * 4),
    ),
    slips=(
        Slip(
            lambda stride, size: size // 4 * math.gcd(stride, BANKS * 4 // size),
            "broadcast",
            "With stride 0 all lanes want the same word, and it is delivered once.",
        ),
        Slip(
            lambda stride, size: 2 if stride == 0 and size == 8 else -1,
            "broadcast",
            "All lanes want one element: then the two halves of a warp go together.",
        ),
        Slip(
            lambda stride, size: math.gcd(stride, BANKS) if stride else 1,
            "size",
            "That is what elements of 4 bytes take. Those of 8 fill two banks each, and half a "
            "warp goes at a time.",
        ),
        Slip(
            lambda stride, size: math.gcd(stride, 16) if stride and size == 8 else -1,
            "size",
            "That is what one half of the warp takes. The other half takes as many again.",
        ),
        Slip(
            lambda stride, size: wavefronts(stride, size) - 1,
            "minus one",
            "That is one too few: it counts what comes on top of the first wavefront.",
        ),
        Slip(
            lambda stride, size: min(max(stride, 1), BANKS),
            "factor",
            "A stride is no conflict by itself: only what it has in common with the number of "
            "banks makes lanes meet. Try 3 by hand.",
        ),
        Slip(
            lambda stride, size: BANKS if math.gcd(stride, BANKS) == 1 else -1,
            "factor",
            "That is the number of banks that are asked. How many words does each have to deliver?",
        ),
    ),
    hints={
        **{"broadcast": 2, "size": 3, "minus one": 1, "factor": 2, "nothing": 1, "error": 2},
        "other": 2,
    },
)

EXERCISES = (TRANSPOSED, WAYS)

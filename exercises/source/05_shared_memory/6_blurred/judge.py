"""05.6, nine neighbours: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import (
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    cover,
    each_its_own,
    square_blocks,
)

from .._shared import BLOCKS, TILE

ALL = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]


def _tiles(edge: int) -> dict[str, int]:
    return {"TILE": edge, "SIDE": edge + 2}


def _edge(case: Case) -> int:
    return case.given.get("TILE", TILE)


def _summed(a: np.ndarray, places: list[tuple[int, int]] = ALL, **beyond) -> np.ndarray:
    """Return the sum of the neighbours at these places; `beyond` says what is beyond the edges."""
    wide = np.pad(a, 1, **beyond)
    m, n = a.shape
    return sum(wide[1 + i : 1 + i + m, 1 + j : 1 + j + n] for i, j in places)


def _result(case: Case, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _summed(a), _summed(abs(a))


def _by_tiles(case: Case, a: np.ndarray, places: list[tuple[int, int]] = ALL) -> np.ndarray:
    """What comes of a block that takes everything beyond its own tile for zero."""
    c, edge = np.zeros((case.m, case.n)), _edge(case)
    for top in range(0, case.m, edge):
        for left in range(0, case.n, edge):
            tile = slice(top, top + edge), slice(left, left + edge)
            c[tile] = _summed(a[tile], places)
    return c


def fewest_loads(case: Case) -> int:
    """Return how many elements of A the tiles and their halos hold, all blocks together."""

    def along(size: int) -> int:
        edge = _edge(case)
        tops = range(0, size, edge)
        return sum(min(size, top + edge + 1) - max(0, top - 1) for top in tops)

    return along(case.m) * along(case.n)


def _most_loads(case: Case) -> int:
    """Return as many as whole tiles with whole halos have: a load may be brought back inside."""
    edge = _edge(case)
    return cover(case.m, edge) * cover(case.n, edge) * (edge + 2) ** 2


PLUS = [(i, j) for i, j in ALL if not (i and j)]
AROUND = [place for place in ALL if place != (0, 0)]

EXERCISE = Exercise(
    name="05.6",
    title="nine neighbours",
    points=4,
    entry="blurred",
    parameters=("a", "c"),
    kind="cuda",
    rules=BLOCKS,
    given=_tiles(TILE),
    launch=square_blocks("TILE", TILE),
    operation=Operation(
        arrays=("a", "c"),
        shapes=lambda case: ((case.m, case.n), (case.m, case.n)),
        result=_result,
        terms=lambda case: len(ALL),
    ),
    cases=(
        Case(8, 12, 1),
        Case(9, 7, 1, draw="normal", order="reverse"),
        Case(6, 11, 1, order="shuffle"),
        # Two warps a block: what orders one warp does not order these.
        Case(19, 26, 1, draw="normal", given=_tiles(8), order="reverse"),
        Case(7, 9, 1, given=_tiles(3), order="shuffle"),
        Case(7, 5, 1, draw="wide", given=_tiles(2)),
        Case(1, 1, 1, draw="normal"),
        Case(1, 9, 1, draw="normal"),
        Case(10, 1, 1, order="reverse"),
        Case(263, 2, 1, draw="normal"),
        Case(2, 265, 1, order="shuffle"),
        Case(4, 4, 1, draw="wide"),
    ),
    large=(Case(517, 389, 301, draw="normal", given=_tiles(16)),),
    slips=(
        Slip(
            lambda case, a: _summed(a, PLUS),
            "neighbours",
            "The four neighbours at the corners are left out: there are eight, three in the row "
            "above, two beside, and three below.",
        ),
        Slip(
            lambda case, a: _summed(a, AROUND),
            "neighbours",
            "The element at the thread's own place is left out: the sum has nine terms.",
        ),
        Slip(
            lambda case, a: _summed(a) + a,
            "neighbours",
            "The element at the thread's own place is in the sum twice.",
        ),
        Slip(
            lambda case, a: a,
            "neighbours",
            "C is a copy of A: the neighbours are left out.",
        ),
        Slip(
            lambda case, a: _summed(a) / 9,
            "neighbours",
            "C holds averages: the task asks for the sum.",
        ),
        Slip(
            lambda case, a: _summed(a, mode="wrap"),
            "edges",
            "Beyond an edge the sum takes elements from the opposite edge. Is there an index "
            "below zero, which counts from the end, or a %? What is beyond A counts as zero.",
        ),
        Slip(
            lambda case, a: _summed(a, mode="edge"),
            "edges",
            "Beyond an edge the sum takes the nearest element of A once more: min() and max() "
            "bring an index back inside, but what is beyond A counts as zero.",
        ),
        Slip(
            _by_tiles,
            "halo",
            "Each block takes everything beyond its own tile for zero: stage the halo as well, one "
            "row and one column more on each side.",
        ),
        Slip(
            lambda case, a: _summed(np.pad(a, 1))[:-2, :-2],
            "shifted",
            "C is shifted by one row and one column: place [0, 0] of the shared array belongs to "
            "the row above the block's tile and the column left of it.",
        ),
        Slip(
            lambda case, a: _summed(np.pad(a, 1))[2:, 2:],
            "shifted",
            "C is shifted by one row and one column: a thread's own element is at place "
            "[y + 1, x + 1] of a shared array that begins with the halo.",
        ),
    ),
    counts=(
        ONCE,
        *each_its_own(loads=lambda case: 10),  # nine of the tile, and its part of staging
        Count(
            "global loads",
            _most_loads,
            "C is right, by the long way: a block loads an element of A more than once. Let the "
            "threads stage the tile and its halo together, each element by one of them.",
            best=fewest_loads,
        ),
        replace(
            NO_NEEDLESS_BARRIERS,
            most=lambda case: 0,
            message="C is right, and at a barrier the block waits for nothing: one barrier is "
            "enough, between the stores to the shared array and the sums. Nothing is staged again.",
        ),
    ),
    remedies={
        "out of bounds": "Guard the access with the array's own shape, each index with its own "
        "axis: it may be too large, and in the halo it may be below zero too.",
        "negative index": "The first row and column of the halo may be outside A: guard them with "
        "0 <= row and 0 <= col, and stage a zero there.",
        "uninitialised read": "Is the whole halo staged, its corners too? It has SIDE rows and "
        "columns, and a block has only TILE × TILE threads.",
    },
    limits=Limits(cost=0.5),
    hints={
        **{"stale": 1, "out of bounds": 3, "negative index": 3, "uninitialised read": 2},
        **{"race": 3, "divergent barrier": 3, "counts": 1, "error": 2, "other": 2},
        **{"neighbours": 1, "edges": 3, "halo": 1, "shifted": 2, "beyond a tile": 1},
        **{"staged twice": 2, "no store": 3, "once": 3, "needless": 3, "unbound": 3},
    },
)

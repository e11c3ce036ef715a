"""05.2, tiles that do not divide: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Exercise,
    Slip,
    cover,
    each_its_own,
    square_blocks,
    tiled_cases,
)

from .._shared import ABC, GUARDS, TILE, fewest_loads


def _left_over(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """What comes of a last tile that holds, beyond K, what the tile before it held there."""
    edge = case.given.get("TILE", TILE)
    last = case.k - case.k % edge
    old = slice(case.k - edge, last)
    return a @ b + a[:, old] @ b[old] if 0 < last < case.k else None


def _ones(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b + -case.k % case.given.get("TILE", TILE)


def _inside_again(into: Callable[[np.ndarray, int], np.ndarray]):
    """Indices beyond an edge are brought back inside: along K that adds products once more."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        tile = case.given.get("TILE", TILE)
        k = into(np.arange(tile * cover(case.k, tile)), case.k)
        return a[:, k] @ b[k]

    return answer


INSIDE_AGAIN = (
    "Beyond K the tiles hold numbers of the matrices once more, and their products are added: an "
    "index that {how} brings back inside loads something. What is not there has to be a zero."
)

EXERCISE = Exercise(
    name="05.2",
    title="tiles that do not divide",
    points=3,
    entry="ragged",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    tile=TILE,
    given={"TILE": TILE},
    launch=square_blocks("TILE", TILE),
    cases=(
        Case(6, 7, 5),
        Case(9, 3, 7, draw="normal", order="shuffle"),
        # Two warps a block: what orders one warp does not order these.
        Case(13, 18, 43, draw="normal", given={"TILE": 8}, order="reverse"),
        Case(18, 17, 37, draw="normal", given={"TILE": 16}),
        *tiled_cases(TILE),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"TILE": 16}),),
    counts=(
        ONCE,
        *each_its_own(),
        NO_NEEDLESS_BARRIERS,
        replace(
            fewest_loads(TILE),
            message="C is right, and more is loaded than there is. Does a thread that has nothing "
            "to load, beyond an edge, load all the same? Or one that could read what another "
            "thread of its block has staged?",
        ),
    ),
    slips=(
        Slip(
            _inside_again(lambda k, size: np.minimum(k, size - 1)),
            "left over",
            INSIDE_AGAIN.format(how="min()"),
        ),
        Slip(_inside_again(np.mod), "left over", INSIDE_AGAIN.format(how="%")),
        Slip(
            _left_over,
            "left over",
            "The last tile along K still holds, beyond K, what the tile before left there: zeros "
            "from before the loop are gone by then. Every tile has to be filled anew, its zeros "
            "as well.",
        ),
        *GUARDS,
        Slip(
            _ones,
            "left over",
            "What lies beyond K has added something: ones in both tiles. It has to be zeros.",
        ),
    ),
    remedies={
        "along K": "Guard the access with the array's own shape, each index with its own axis. The "
        "loop is right: it goes as far as the tile that is cut off.",
    },
    hints={
        **{"stale": 3, "out of bounds": 1, "negative index": 1, "uninitialised read": 2},
        **{"race": 3, "divergent barrier": 3, "part of k": 2, "counts": 1, "error": 1, "other": 2},
        **{"out of bounds of c": 3, "guards": 1, "left over": 2},
    },
)

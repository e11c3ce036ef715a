"""08.3, take this tile: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Count,
    Exercise,
    Limits,
    Slip,
    cover,
    each_its_own,
    tiled_cases,
)

from .._shared import ABC, DEPTH, SHARED, TILE, blocks, launch, tile_edge


def _taken(of_a=None, of_b=None, products: str = "DEPTH"):
    """Return what C holds where a step takes other elements of A or of B, or fewer of them.

    `of_a` and `of_b` return (row, column) of the element taken, from a Place; what is beyond the
    matrix is 0, as a copy makes it.
    """

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        if case.m * case.n * case.k > 1 << 20:  # all of them are laid out at once
            return None
        at = Place(case)
        left = _element(a, *(of_a(at) if of_a else (at.row, at.k)))
        right = _element(b, *(of_b(at) if of_b else (at.k, at.col)))
        return (left * right * (at.within < getattr(at, products))).sum(axis=2)

    return answer


class Place:
    """Where each product of C's elements comes from, along (row, column, k) of C."""

    def __init__(self, case: Case) -> None:
        self.TILE, self.DEPTH = tile_edge(case), case.given.get("DEPTH", DEPTH)
        k = np.arange(self.DEPTH * cover(case.k, self.DEPTH))
        self.row, self.col, self.k = np.ix_(np.arange(case.m), np.arange(case.n), k)
        (self.down, self.y), (self.across, self.x), (self.step, self.within) = (
            np.divmod(self.row, self.TILE),
            np.divmod(self.col, self.TILE),
            np.divmod(self.k, self.DEPTH),
        )


def _element(matrix: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    rows, columns = matrix.shape
    inside = (row < rows) & (column < columns)
    return np.where(inside, matrix[np.minimum(row, rows - 1), np.minimum(column, columns - 1)], 0)


def _cut_square(at: Place) -> np.ndarray:
    """The k of tiles that are only TILE deep: behind that there is nothing."""
    return np.where(at.within < at.TILE, at.step * at.TILE + at.within, at.k.size * at.DEPTH)


NO_VIEW = (
    "Each tile of {which} is its first one: a copy takes the first elements of what it is given. "
    "Give it the tile, tile({name}, rows, columns)[i, j], and not the matrix."
)

SAME_STEP = (
    "Every step takes the same tiles of {which}, the first ones along K. Which of the two numbers "
    "of a tile is the step?"
)

CUT_SQUARE = (
    "{which} is cut into tiles of TILE × TILE, and a step goes over DEPTH elements of K: what a "
    "tile does not have is zeros."
)

WRONG_WAY = (
    "The two numbers of a tile of {which} are the wrong way round: the row of tiles comes first, "
    "the column second."
)

# Made with A, with B and with both: what is said, which tile a step takes of each, the diagnosis.
TAKEN = (
    (NO_VIEW, lambda at: (at.y, at.within), lambda at: (at.within, at.x), "no view"),
    (SAME_STEP, lambda at: (at.row, at.within), lambda at: (at.within, at.col), "which tile"),
    (
        WRONG_WAY,
        lambda at: (at.step * at.TILE + at.y, at.down * at.DEPTH + at.within),
        lambda at: (at.across * at.DEPTH + at.within, at.step * at.TILE + at.x),
        "which tile",
    ),
)

SQUARE_A = _taken(lambda at: (at.row, _cut_square(at)), None)
SQUARE_B = _taken(None, lambda at: (_cut_square(at), at.col))

OTHER_BLOCK = Slip(
    _taken(
        lambda at: (at.across * at.TILE + at.y, at.k),
        lambda at: (at.k, at.down * at.TILE + at.x),
    ),
    "which tile",
    "The tiles are those of another block: cuda.blockIdx.y counts the rows of tiles, "
    "cuda.blockIdx.x the columns.",
)


def _views() -> Iterator[Slip]:
    """Yield the mistakes of which tile is taken, each made with A, with B and with both."""
    for text, of_a, of_b, diagnosis in TAKEN:
        for which, name, left, right in (
            ("A", "a", of_a, None),
            ("B", "b", None, of_b),
            ("A and of B", "a", of_a, of_b),
        ):
            yield Slip(_taken(left, right), diagnosis, text.format(which=which, name=name))


EXERCISE = Exercise(
    name="08.3",
    title="take this tile",
    points=3,
    entry="by_views",
    parameters=ABC,
    kind="cuda",
    rules=replace(
        CUDA, names=CUDA.names | {"tile", "copy_tile_async", "commit_copies", "wait_copies"}
    ),
    limits=Limits(cost=2),
    tile=TILE,
    given={"TILE": TILE, "DEPTH": DEPTH},
    launch=launch,
    cases=(
        Case(8, 8, 16),
        Case(7, 5, 9, draw="normal", order="shuffle"),
        Case(5, 4, 1),
        # Two warps a block: what orders one warp does not order these.
        Case(9, 10, 33, given={"TILE": 8, "DEPTH": 16}, order="reverse"),
        # DEPTH may be any multiple of TILE.
        Case(6, 7, 41, given={"TILE": 4, "DEPTH": 12}),
        Case(9, 10, 21, given={"TILE": 8, "DEPTH": 8}),
        *tiled_cases(DEPTH),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"TILE": 16, "DEPTH": 32}),),
    since=(8, 0),
    slips=(
        *_views(),
        OTHER_BLOCK,
        Slip(SQUARE_A, "size", CUT_SQUARE.format(which="A")),
        Slip(SQUARE_B, "size", CUT_SQUARE.format(which="B")),
        Slip(
            _taken(products="TILE"),
            "size",
            "Of each tile only the first TILE elements along K are multiplied: the tiles are DEPTH "
            "deep.",
        ),
    ),
    counts=(
        SHARED,
        ONCE,
        *each_its_own(),
        NO_NEEDLESS_BARRIERS,
        Count(
            "plain global loads",
            lambda case: 0,
            "C is right, but some elements come by a load and not by `copy_tile_async`.",
            "plain",
            share=0,
        ),
        Count(
            "barriers",
            lambda case: 2 * blocks(case) * cover(case.k, case.given.get("DEPTH", DEPTH)),
            "C is right, and the block waits more often than twice for DEPTH elements of K.",
            "depth",
            best=lambda case: 2 * blocks(case) * cover(case.k, case.given.get("DEPTH", DEPTH)),
        ),
    ),
    hints={
        **{"race": 3, "uninitialised read": 3, "divergent barrier": 3, "plain": 1, "depth": 2},
        **{"never copied": 1, "copied twice": 1, "forbidden": 1, "sharing": 1},
        **{"no view": 1, "which tile": 2, "size": 2},
        **{"out of bounds": 2, "part of k": 2, "stale": 2, "error": 1, "other": 2},
    },
)

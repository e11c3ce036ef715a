"""03.1, Loops 4 with the right indices: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import (
    LOOPS,
    SEEN_PRODUCTS,
    Case,
    Count,
    Exercise,
    Limits,
    Slip,
    cover,
    tiled_cases,
)

from .._shared import SHORT_TILES

T = 4


def _edge(case: Case) -> int:
    return case.given.get("T", T)


def _room(case: Case) -> tuple[int]:
    """The words of the cache that is watched: three tiles, and one more to change them in."""
    return (4 * _edge(case) ** 2,)


def _three_tiles_each(case: Case) -> int:
    """The words of tiles of A, B and C, each fetched anew whenever the three change."""
    edge = _edge(case)

    def tiles(size: int) -> int:
        return -(-size // edge)

    a = case.m * case.k * tiles(case.n)
    b = case.k * case.n * tiles(case.m)
    c = case.m * case.n * tiles(case.k)
    return a + b + c + case.m * case.n  # and C once more, where it is set to zero before


def _cut(size: int, edge: int, whole: bool = False) -> list[tuple[int, int]]:
    """Where the tiles along a loop begin, and how far they reach within the matrix."""
    last = size - edge + 1 if whole else size
    return [(first, min(first + edge, size)) for first in range(0, max(last, 0), edge)]


def _lost(c_row: bool, c_column: bool, a_row: bool, b_column: bool):
    """Loops whose inner i0 or j0 is missing from some indices; they are counted all the same."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        made, edge = np.zeros((case.m, case.n)), _edge(case)
        for i, i_end in _cut(case.m, edge):
            rows = [i] * (i_end - i) if a_row else list(range(i, i_end))
            for j, j_end in _cut(case.n, edge):
                columns = [j] * (j_end - j) if b_column else list(range(j, j_end))
                tile = a[rows] @ b[:, columns]
                to_rows = [i] * (i_end - i) if c_row else list(range(i, i_end))
                to_columns = [j] * (j_end - j) if c_column else list(range(j, j_end))
                np.add.at(made, np.ix_(to_rows, to_columns), tile)
        return made

    return answer


def _k_alone(of_a: bool, of_b: bool):
    """k0 is missing from A's index, from B's, or from both."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        edge = _edge(case)
        along = np.arange(case.k)
        first = along // edge * edge
        return a[:, first if of_a else along] @ b[first if of_b else along]

    return answer


def _whole_tiles(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tiles that do not fit are left out."""
    edge = _edge(case)
    m, n, k = (size // edge * edge for size in (case.m, case.n, case.k))
    made = np.zeros((case.m, case.n))
    made[:m, :n] = a[:m, :k] @ b[:k, :n]
    return made


def _whole_k(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    k = case.k // _edge(case) * _edge(case)
    return a[:, :k] @ b[:k]


def _last_product(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.outer(a[:, -1], b[-1])


def _nothing(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.zeros((case.m, case.n))


def _tile_alone(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Only the first tile: i0 without i, and so on, added up."""
    made, edge = np.zeros((case.m, case.n)), _edge(case)
    for i, i_end in _cut(case.m, edge):
        for j, j_end in _cut(case.n, edge):
            for k, k_end in _cut(case.k, edge):
                rows, columns, along = i_end - i, j_end - j, k_end - k
                made[:rows, :columns] += a[:rows, :along] @ b[:along, :columns]
    return made


def _lost_slip(where: str, name: str, rows: str, *flags: bool) -> Slip:
    index = f"`{name[0]} + {name}`"
    return Slip(
        _lost(*flags),
        f"lost {name}",
        f"An index of {where} says `{name[0]}` where it should say {index}: the loop over "
        f"`{name}` turns, and all its turns meet in the first {rows} of a tile.",
    )


EXERCISE = Exercise(
    name="03.1",
    title="Loops 4 with the right indices",
    points=4,
    entry="loops_4",
    parameters=("a", "b", "c"),
    kind="loops",
    rules=LOOPS,
    limits=Limits(seconds=6),
    tile=T,
    given={"T": T},
    launch=_room,
    cases=(
        Case(8, 12, 8),
        Case(10, 11, 9),
        *tiled_cases(T),
        Case(7, 16, 11, draw="normal", given={"T": 5}),
    ),
    counts=(
        Count(
            "words fetched",
            _three_tiles_each,
            "C is right, and not by tiles: three tiles would fit into the cache that was watched, "
            "and these loops fetch the same words again and again. The three loops over tiles go "
            "outside, the three inside a tile inside.",
            best=lambda case: 504 if (case.m, case.n, case.k) == (8, 12, 8) else None,
        ),
        Count(
            "reads of A",
            None,
            "C is right, and elements of A are read fewer times than three tiles need: A was "
            "copied before. Read each element where it is multiplied.",
            "copied",
            share=0,
            least=lambda case: case.m * case.k * cover(case.n, _edge(case)),
        ),
        Count(
            "reads of B",
            None,
            "C is right, and elements of B are read fewer times than three tiles need: B was "
            "copied before. Read each element where it is multiplied.",
            "copied",
            share=0,
            least=lambda case: case.n * case.k * cover(case.m, _edge(case)),
        ),
        Count(
            "whole rows",
            lambda case: 0,
            "C is right, and NumPy runs some of the loops: whole pieces of a matrix are taken at "
            "once. Ask for one element of each matrix at a time.",
        ),
        SEEN_PRODUCTS,
    ),
    slips=(
        Slip(
            _nothing,
            "empty ranges",
            "Nothing was added at all. `range(M, T)` begins at M and is empty: tiles begin at 0, "
            "and the next one T further.",
        ),
        Slip(
            _lost(True, True, True, True),
            "lost i0 and j0",
            "Only the first element of each tile is written, once for each turn of `i0` and `j0`: "
            "the two loops turn, and no index says `i + i0` or `j + j0`.",
        ),
        _lost_slip("C and of A", "i0", "row", True, False, True, False),
        _lost_slip("C and of B", "j0", "column", False, True, False, True),
        _lost_slip("C", "i0", "row", True, False, False, False),
        _lost_slip("C", "j0", "column", False, True, False, False),
        Slip(
            _lost(True, True, False, False),
            "lost i0 and j0",
            "A and B are read at the right places, and the sums of a whole tile meet in its first "
            "element: C needs `i + i0` and `j + j0` too.",
        ),
        Slip(
            _lost(False, False, True, False),
            "lost i0",
            "All rows of a tile hold the sums of its first one: A needs `i + i0` too.",
        ),
        Slip(
            _lost(False, False, False, True),
            "lost j0",
            "All columns of a tile hold the sums of its first one: B needs `j + j0` too.",
        ),
        *(
            Slip(
                _k_alone(*flags),
                "lost k0",
                f"{where} read at `k` for each turn of `k0`: write `k + k0`.",
            )
            for flags, where in (
                ((True, True), "A and B are"),
                ((True, False), "A is"),
                ((False, True), "B is"),
            )
        ),
        Slip(
            _last_product,
            "last product",
            "Only the last product of each sum is left: is it written with = instead of +=?",
        ),
        Slip(
            _tile_alone,
            "lost i, j and k",
            "Everything lands in the first tile: `i0` counts within a tile, and an index is "
            "`i + i0`.",
        ),
        Slip(
            _whole_tiles,
            "whole tiles",
            "The tiles at the end that do not fit whole are left out: they are shorter, and have "
            "to be done all the same.",
        ),
        Slip(
            _whole_k,
            "whole tiles",
            "The last, short tile along K is left out of each sum.",
        ),
    ),
    remedies={"out of bounds": SHORT_TILES},
    hints={
        **{"empty ranges": 1, "lost i0": 2, "lost j0": 2, "lost i0 and j0": 2, "lost k0": 2},
        **{"last product": 1},
        **{"lost i, j and k": 2, "whole tiles": 3, "out of bounds": 3, "ragged edge": 3},
        **{"part of k": 2, "scaled": 2, "counts": 1, "copied": 1, "negative index": 2, "error": 1},
        **{"uninitialised read": 1, "stale": 1, "timeout": 1, "other": 2},
    },
)

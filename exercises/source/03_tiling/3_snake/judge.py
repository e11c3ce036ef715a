"""03.3, a walk that turns round: what is asked for, and how an answer is judged."""

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
ROOM = 4  # tiles: the three of a step, and one more to change them in


def _edge(case: Case) -> int:
    return case.given.get("T", T)


def _cache(case: Case) -> tuple[tuple[int, int, int]]:
    return ((ROOM, _edge(case), _edge(case)),)


def _steps(case: Case) -> tuple[int, int]:
    """Tiles of C, and steps: products of two tiles."""
    i, j, k = (cover(size, _edge(case)) for size in (case.m, case.n, case.k))
    return i * j, i * j * k


def _target(case: Case) -> int:
    """Two tiles a step, and one more in the first."""
    return 2 * _steps(case)[1] + 1


def _best(case: Case) -> int | None:
    """What is loaded in the first case with two tiles of C at a time.

    They fit because the cache has room for a fourth tile; a tile of B then serves two steps.
    """
    return 51 if (case.m, case.n, case.k) == (12, 12, 12) else None


def _below_loops_4(case: Case) -> int:
    of_c, steps = _steps(case)
    return max(_target(case), 2 * steps + of_c - 1)


def _by_tiles(case: Case) -> int:
    """What Loops 4 in any order of its tiles loads, and C once more to set it to zero."""
    of_c, steps = _steps(case)
    return 3 * steps + of_c


def _cut(size: int, edge: int) -> list[slice]:
    return [slice(first, min(first + edge, size)) for first in range(0, size, edge)]


def _left_out(rows: bool, columns: bool, along: bool):
    """Tiles at the end that are not whole are left out."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        def whole(size: int, cut: bool) -> int:
            return size // _edge(case) * _edge(case) if cut else size

        m, n, k = whole(case.m, rows), whole(case.n, columns), whole(case.k, along)
        made = np.zeros((case.m, case.n))
        made[:m, :n] = a[:m, :k] @ b[:k, :n]
        return made

    return answer


def _turned_once(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """`reversed` leaves an iterator that is empty from the second walk on."""
    made = np.zeros((case.m, case.n))
    tiles = [(i, j) for i in _cut(case.m, _edge(case)) for j in _cut(case.n, _edge(case))]
    for i, j in tiles[:2]:
        made[i, j] = a[i] @ b[:, j]
    return made if len(tiles) > 2 else None


def _first_tile_of_c(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    made, edge = np.zeros((case.m, case.n)), _edge(case)
    made[:edge, :edge] = a[:edge] @ b[:, :edge]
    return made


def _last_product(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What is written last: at the last k of all, or at that of the first tile."""
    turned = min(_edge(case), case.k) - 1
    return _in_turns(case, *(np.outer(a[:, k], b[k]) for k in (-1, turned)))


def _without_zero(always: bool):
    """A walk that goes backwards ends before the tile at k = 0."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        edge, right = _edge(case), a @ b
        cut = a[:, edge:] @ b[edge:]
        if not always:
            return _in_turns(case, right, cut)
        cut[:edge, :edge] = right[:edge, :edge]
        return cut

    return answer


def _in_turns(case: Case, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a C whose tiles are those of two others by turns."""
    made, number = first.copy(), 0
    for i in _cut(case.m, _edge(case)):
        for j in _cut(case.n, _edge(case)):
            if number % 2:
                made[i, j] = second[i, j]
            number += 1
    return made


def _only(turned: bool):
    """Only every second tile of C, in the order of the walk, has its sum."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        both = a @ b, np.zeros((case.m, case.n))
        return _in_turns(case, *(both[::-1] if turned else both))

    return answer


EXERCISE = Exercise(
    name="03.3",
    title="a walk that turns round",
    points=4,
    entry="snake",
    parameters=("a", "b", "c"),
    kind="loops",
    rules=LOOPS,
    limits=Limits(seconds=6, cost=0.6),
    tile=T,
    given={"T": T},
    launch=_cache,
    cases=(
        Case(12, 12, 12),
        Case(10, 15, 9, draw="normal"),
        Case(9, 7, 21, draw="normal", given={"T": 3}),
        Case(15, 16, 11, draw="wide", given={"T": 5}),
        *tiled_cases(T),
    ),
    counts=(
        Count(
            "whole rows",
            lambda case: 0,
            "C is right, and NumPy runs some of the loops: whole pieces of a matrix are taken at "
            "once. Access one element of each matrix at a time.",
            "rows",
        ),
        Count(
            "reads without a product",
            lambda case: 2 * _edge(case) ** 2 + 4 * _edge(case),
            "C is right, and more than the tiles of one step was copied before it was multiplied. "
            "Change the walk instead.",
            "copied",
        ),
        Count(
            "tiles fetched",
            _by_tiles,
            "C is right, and not by tiles of T × T: the cache loads the same tiles again and "
            "again. The loops over tiles go outside, the loops inside a tile inside.",
            "no tiles",
        ),
        Count(
            "tiles fetched",
            _below_loops_4,
            "C is right, and this walk saves no loads: when a new tile of C begins, all three "
            "tiles are new. Where could the next walk along K begin, so that the tile of A is the "
            "one that was used last?",
            "one way",
        ),
        Count(
            "tiles fetched",
            _target,
            "C is right, and most steps keep a tile. Some steps load three new ones: which of i, j "
            "and k change where a row of tiles of C ends?",
            "row end",
            best=_best,
        ),
        SEEN_PRODUCTS,
    ),
    slips=(
        Slip(
            _turned_once,
            "used up",
            "Only the first two tiles of C have their sums. Does the walk along K use up an "
            "iterator? `reversed(…)` can be gone through once only; a range can be reversed by "
            "`[::-1]` as often as you like.",
        ),
        Slip(
            _first_tile_of_c,
            "used up",
            "Only the first tile of C has its sums: the walk along K is empty from the second tile "
            "on.",
        ),
        Slip(
            _only(False),
            "empty backwards",
            "Every second tile of C is missing, where the walk along K goes backwards. A range "
            "that counts down needs a negative step, and ends one step below 0.",
        ),
        Slip(
            _only(True),
            "empty backwards",
            "Every second tile of C is missing, where the walk along K goes forwards.",
        ),
        *(
            Slip(
                _without_zero(always),
                "empty backwards",
                "Where the walk along K goes backwards, the tile at k = 0 is missing: a range that "
                "counts down to 0 has to end below it, at -1.",
            )
            for always in (True, False)
        ),
        Slip(
            _left_out(True, True, True),
            "short tiles",
            "The tiles at the end that do not fit whole are left out: they are shorter, and their "
            "elements have to be computed too.",
        ),
        *(
            Slip(
                _left_out(*flags),
                "short tiles",
                f"The short tiles at the end along {axis} are left out.",
            )
            for axis, flags in (
                ("M", (True, False, False)),
                ("N", (False, True, False)),
                ("K", (False, False, True)),
            )
        ),
        Slip(
            _last_product,
            "last product",
            "Only the last product of each sum is left: is it written with = instead of +=?",
        ),
    ),
    remedies={"out of bounds": SHORT_TILES},
    hints={
        **{"one way": 1, "row end": 2, "no tiles": 3, "copied": 1, "rows": 3, "used up": 3},
        **{"empty backwards": 3, "short tiles": 3, "last product": 3, "error": 3, "timeout": 3},
        **{"negative index": 3, "out of bounds": 3, "part of k": 2, "stale": 3, "other": 1},
    },
)

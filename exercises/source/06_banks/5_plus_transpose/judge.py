"""06.5, a matrix plus its transpose: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    cover,
    each_its_own,
)

from .._shared import EDGE, ROWS, launch, rows_of, sectors_of_rows


def _case(n: int, **how) -> Case:
    return Case(n, n, 1, **how)


def _diagonal(case: Case) -> int:
    """Return how many elements the tiles on the diagonal have."""
    whole, rest = divmod(case.m, EDGE)
    return whole * EDGE**2 + rest**2


def _diagonal_sectors(case: Case) -> int:
    """Return how many sectors these tiles take, row by row, or a little more."""
    return sum(
        min(EDGE, case.m - row // EDGE * EDGE) // 8 + 2 for row in range(cover(case.m, EDGE) * EDGE)
    )


def loads(case: Case) -> int:
    """Return what tiles load that are never cut, with those on the diagonal loaded twice."""
    tiles = cover(case.m, EDGE)
    return tiles * (tiles + 1) * EDGE**2


def load_sectors(case: Case) -> int:
    """Return the sectors of A's rows, clamped rows and a second load of the diagonal included."""
    whole = cover(case.m, EDGE) * EDGE
    return sectors_of_rows(whole, case.m, EDGE, case.m) + _diagonal_sectors(case)


def store_sectors(case: Case) -> int:
    """Return the sectors of C's rows, with the tiles on the diagonal stored twice."""
    return sectors_of_rows(case.m, case.m, EDGE) + _diagonal_sectors(case)


def _upper(case: Case) -> np.ndarray:
    """Return where the tiles above the diagonal are."""
    row, column = np.indices((case.m, case.m)) // EDGE
    return row < column


def _not_mirrored(case: Case, a: np.ndarray) -> np.ndarray | None:
    """Below the diagonal the sums of the tile above it, not transposed."""
    if case.m % EDGE or case.m == EDGE:
        return None
    c, upper = a + a.T, _upper(case)
    tiles = c.reshape(case.m // EDGE, EDGE, case.m // EDGE, EDGE).transpose(0, 2, 1, 3)
    moved = tiles.transpose(1, 0, 2, 3).transpose(0, 2, 1, 3).reshape(case.m, case.m)
    return np.where(upper.T, moved, c)


def _by_side(above: np.ndarray, below: np.ndarray, case: Case) -> np.ndarray | None:
    """Return what is above and below the tiles on the diagonal; those may hold anything."""
    if case.m <= EDGE:
        return None
    upper = _upper(case)
    return np.where(upper, above, np.where(upper.T, below, np.nan))


EXERCISE = Exercise(
    name="06.5",
    title="a matrix plus its transpose",
    points=4,
    entry="plus_transpose",
    parameters=("a", "c"),
    kind="cuda",
    rules=CUDA,
    limits=Limits(cost=2),
    given={"EDGE": EDGE, "ROWS": ROWS},
    launch=launch,
    operation=Operation(
        arrays=("a", "c"),
        shapes=lambda case: ((case.m, case.m), (case.m, case.m)),
        result=lambda case, a: (a + a.T, abs(a) + abs(a.T)),
        terms=lambda case: 1,
    ),
    cases=(
        _case(64, draw="wide"),
        _case(33, draw="normal", order="shuffle"),
        _case(32, draw="normal", order="reverse"),
        _case(100, draw="normal", order="reverse"),
        _case(131, dtype="int32", draw="full", order="shuffle"),
        _case(1, draw="normal"),
        _case(31, dtype="int32", draw="full", order="reverse"),
        _case(70, draw="normal", given={"ROWS": 4}, order="shuffle"),
        _case(65, draw="normal", given={"ROWS": 16}),
    ),
    large=(
        Case(517, 517, 301, draw="normal"),
        Case(1000, 1000, 301, dtype="int32", draw="full"),
    ),
    slips=(
        Slip(
            lambda case, a: _by_side(2 * a, 2 * a.T, case),
            "value",
            "Above the diagonal that is a + a: the second summand is the mirrored element, in row "
            "j and column i.",
        ),
        Slip(
            lambda case, a: a.T,
            "value",
            "That is the transpose alone: the other summand is missing.",
        ),
        Slip(
            _not_mirrored,
            "mirror",
            "The sums are right, but in the tiles below the diagonal they stand as in those above "
            "it: they have to be transposed.",
        ),
        Slip(
            lambda case, a: _by_side(a + a.T, a, case),
            "old",
            "In the tiles below the diagonal there is `a` alone: the tile of shared memory still "
            "holds what was staged, where it should hold the sums.",
        ),
    ),
    counts=(
        Count(
            "global loads",
            loads,
            "C is right, but elements of A are loaded more than once. Tile (I, J) and tile (J, I) "
            "of C need the same two tiles of A, so one block has to make both.",
            "pairs",
        ),
        Count(
            "global stores",
            lambda case: case.m**2 + _diagonal(case),
            "C is right, but elements of it are stored more than once. Which blocks do the work of "
            "another one?",
            "pairs",
        ),
        *each_its_own(lambda case: 2 * EDGE // rows_of(case)),
        Count(
            "shared bytes",
            lambda case: 4 * EDGE**2,
            "C is right, but it takes more shared memory than one tile of EDGE × EDGE elements: "
            "neither a second tile nor padding is allowed.",
            "memory",
        ),
        Count(
            "global load sectors",
            load_sectors,
            "C is right, but the loads of a warp are spread over many sectors: x has to run along "
            "a row of A, in both tiles.",
            "sectors",
        ),
        Count(
            "global store sectors",
            store_sectors,
            "C is right, but the stores of a warp are spread over many sectors: x has to run along "
            "a row of C, in both tiles. So one of them has to be transposed on the way.",
            "sectors",
        ),
        Count(
            "bank conflicts",
            lambda case: 0,
            "C is right and everything else is as it should be, but an access to the tile has bank "
            "conflicts. Rows and columns of it are accessed, and there is no padding.",
            "conflicts",
            best=lambda case: 0,
        ),
        Count(
            "barriers",
            lambda case: 2 * cover(case.m, EDGE) ** 2,
            "C is right, but a block waits at more than two barriers: one behind staging and one "
            "before the transposed sums are stored are enough.",
            "needless",
            best=lambda case: cover(case.m, EDGE) * (cover(case.m, EDGE) + 1),
        ),
    ),
    remedies={
        "race": "One barrier belongs behind staging, and one behind the phase in which the sums "
        "replace what was staged. Within that phase a thread writes only the place that it read.",
    },
    hints={
        **{"pairs": 1, "memory": 2, "sectors": 2, "conflicts": 3, "needless": 2, "race": 2},
        **{"old": 2, "mirror": 2, "value": 1, "stale": 1, "race of c": 1},
        **{"out of bounds": 1, "divergent barrier": 3, "uninitialised read": 1},
        "other": 1,
    },
)

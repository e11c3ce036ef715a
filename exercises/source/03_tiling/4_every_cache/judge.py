"""03.4, tiles for every cache: what is asked for, and how an answer is judged.

The answer's own walk loads up to 1.6 times 2MNK/T into each cache, and tiles of one size 1.9 times
and more into one of three. Tiles of 5 within tiles of 15 suit three caches, not the others.
"""

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
)

EDGES = (2, 5, 12)  # of the largest tiles of which three fit into a cache
OTHER_EDGES = (3, 7, 13)  # where K is not beyond DEEP
DEEP = 25
FIRST, BEST = (25, 27, 29), (29_053, 11_711, 4_940)
LARGE = 9  # M, N and K from which on loads are limited


def _edges(case: Case) -> tuple[int, ...]:
    return EDGES if case.k > DEEP else OTHER_EDGES


def _caches(case: Case) -> tuple[int, ...]:
    return tuple(3 * edge * edge for edge in _edges(case))


def _most(number: int):
    def most(case: Case) -> int:
        work = case.m * case.n * case.k
        if min(case.m, case.n, case.k) < LARGE:
            return 4 * work + 2 * case.m * case.n
        once = case.m * case.k + case.k * case.n + case.m * case.n
        return max(int(3.5 * work / _edges(case)[number]), once)

    return most


def _best(number: int):
    """What the course's own answer loads in the first case, whose counts a learner sees."""
    return lambda case: BEST[number] if (case.m, case.n, case.k) == FIRST else None


def _half(rows: bool, columns: bool, along: bool):
    """Of an odd number, the last one is left out, or only the first half is computed."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        made = np.zeros((case.m, case.n))
        m = case.m // 2 if rows else case.m
        n = case.n // 2 if columns else case.n
        k = case.k // 2 if along else case.k
        made[:m, :n] = a[:m, :k] @ b[:k, :n]
        return made

    return answer


def _nothing(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.zeros((case.m, case.n))


def _kept(indices: list[int]) -> list[int]:
    """What is left if both halves of an odd number are too short by one, again and again."""
    half = len(indices) // 2
    return _kept(indices[:half]) + _kept(indices[half : 2 * half]) if half else indices


def _powers(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    m, n, k = (_kept(list(range(size))) for size in (case.m, case.n, case.k))
    made = np.zeros((case.m, case.n))
    made[np.ix_(m, n)] = a[np.ix_(m, k)] @ b[np.ix_(k, n)]
    return made


def _first_piece(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    made = np.zeros((case.m, case.n))
    made[0, 0] = a[0, 0] * b[0, 0]
    return made


def _last_product(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.outer(a[:, -1], b[-1])


TOO_MANY = (
    "C is right, and the {which} cache loads too much: the walk goes through more than fits there "
    "before it comes back. {then}"
)

EXERCISE = Exercise(
    name="03.4",
    title="tiles for every cache",
    points=4,
    entry="every_cache",
    parameters=("a", "b", "c"),
    kind="loops",
    rules=LOOPS,
    limits=Limits(seconds=8, cost=2.0),
    launch=_caches,
    cases=(
        Case(*FIRST),
        Case(20, 18, 23, draw="normal"),
        Case(9, 45, 33, draw="normal"),
        Case(1, 1, 1),
        Case(3, 2, 1, draw="wide"),
        Case(263, 2, 3, draw="normal"),
        Case(2, 269, 3, draw="wide"),
        Case(1, 3, 1_031, draw="normal"),
        *(Case(2 + k % 3, 2 + k % 5, k, draw="normal") for k in range(2, 10)),
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
            lambda case: 64 + case.m + case.n + case.k,
            "C is right, and a matrix was copied before its elements were multiplied. Change the "
            "walk instead.",
            "copied",
        ),
        Count(
            "words fetched by cache 3",
            _most(2),
            TOO_MANY.format(
                which="largest",
                then="Its tiles have to be larger, with the small ones within them.",
            ),
            "largest",
            best=_best(2),
        ),
        Count(
            "words fetched by cache 2",
            _most(1),
            TOO_MANY.format(
                which="middle", then="Which tiles lie between the large ones and the small ones?"
            ),
            "middle",
            best=_best(1),
        ),
        Count(
            "words fetched",
            _most(0),
            TOO_MANY.format(
                which="smallest", then="How small are the smallest pieces, and are they square?"
            ),
            "smallest",
            best=_best(0),
        ),
        SEEN_PRODUCTS,
    ),
    slips=(
        Slip(
            _nothing,
            "nothing",
            "Nothing was added at all. Is there a piece so small that the function multiplies it, "
            "and is that reached?",
        ),
        Slip(
            _powers,
            "odd",
            "Of a piece with an odd number of rows, columns or steps one is left out: if the first "
            "half of 5 has 2, the second half has 3.",
        ),
        Slip(
            _first_piece,
            "half",
            "Only the first piece of all is multiplied. Is the function called for both halves?",
        ),
        Slip(
            _last_product,
            "last product",
            "Only the last product of each sum is left: is it written with = instead of +=?",
        ),
        *(
            Slip(
                _half(*flags),
                "half",
                f"Only the first half of {axis} is computed. Is the function called for both "
                "halves?",
            )
            for axis, flags in (
                ("M", (True, False, False)),
                ("N", (False, True, False)),
                ("K", (False, False, True)),
            )
        ),
    ),
    hints={
        **{"largest": 1, "middle": 1, "smallest": 2, "copied": 1, "rows": 3, "nothing": 2},
        **{"odd": 3, "last product": 3, "half": 3, "error": 3, "timeout": 3, "crash": 3},
        **{"part of k": 3, "stale": 3, "out of bounds": 3, "negative index": 3, "other": 1},
    },
)

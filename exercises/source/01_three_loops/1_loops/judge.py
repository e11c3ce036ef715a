"""01.1, three loops for any sizes: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import LOOPS, Case, Count, Exercise, Limits, Slip


def _running(axis: int | None):
    """Sums that are not started anew: for each row of C, or for all of it."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.cumsum(a @ b, axis=axis).reshape(case.m, case.n)

    return answer


def _last_product(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.outer(a[:, -1], b[-1])


def _sums_of_factors(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.sum(axis=1)[:, None] + b.sum(axis=0)


def _squares(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """All three loops run M times, and that is too few."""
    edge = case.m
    if edge == case.n == case.k or edge > min(case.n, case.k):
        return None
    made = np.full((case.m, case.n), np.nan)
    made[:, :edge] = a[:, :edge] @ b[:edge, :edge]
    return made


NOT_ANEW = (
    "Each element holds the sum of the one before it as well: the sum starts from zero once "
    "{when}, and has to for each element."
)

EXERCISE = Exercise(
    name="01.1",
    title="three loops for any sizes",
    points=3,
    entry="loops",
    parameters=("a", "b", "c"),
    kind="loops",
    rules=LOOPS,
    limits=Limits(seconds=4),
    cases=(
        Case(3, 6, 5),
        Case(7, 5, 3),
        # Each size is the large one in its turn; products of "wide" numbers are large too.
        Case(67, 2, 3),
        Case(3, 71, 2, draw="wide"),
        Case(2, 3, 73, draw="normal"),
        Case(4, 3, 1, draw="wide"),
        Case(2, 5, 0),
        Case(6, 6, 6, draw="normal"),
        Case(1, 2, 1_200),
        Case(17, 19, 18),
        # Each remainder, for sums that are taken in steps of up to eight.
        *(Case(2, 3, k, draw="normal") for k in range(4, 18)),
    ),
    counts=(
        Count(
            "whole rows",
            lambda case: 0,
            "C is right, and one of the three loops is NumPy's: a whole row or column is taken at "
            "once. Ask for one element of each matrix at a time.",
        ),
        Count(
            "reads of A",
            lambda case: case.m * case.n * case.k,
            "C is right, by the long way: elements of A are read more than M·N·K times.",
        ),
    ),
    slips=(
        Slip(_running(1), "not anew", NOT_ANEW.format(when="a row")),
        Slip(_running(None), "not anew", NOT_ANEW.format(when="in all")),
        Slip(
            _last_product,
            "last product",
            "Only the last product of each sum is left. Is C set to zero, or written with = "
            "instead of +=, at every step of k?",
        ),
        Slip(
            _squares,
            "square",
            "All three loops run M times, as if the matrices were squares. Each has a size of its "
            "own: M, N and K.",
        ),
        Slip(
            _sums_of_factors,
            "operation",
            "The sums add a[i, k] and b[k, j]; the definition multiplies the two.",
        ),
    ),
    hints={
        **{"uninitialised read": 2, "stale": 1, "out of bounds": 1, "negative index": 1},
        **{"transposed": 2, "zero": 1, "part of k": 3, "not anew": 2, "last product": 3},
        **{
            "scaled": 3,
            "operation": 1,
            "square": 1,
            "counts": 2,
            "error": 1,
            "timeout": 1,
            "other": 2,
        },
    },
)

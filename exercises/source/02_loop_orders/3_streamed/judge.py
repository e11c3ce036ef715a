"""02.3, an order for Aᵀ · B: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import (
    LOOPS,
    SEEN_PRODUCTS,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    cover,
)

LINE = 4  # elements


def _cache(case: Case) -> tuple[tuple[int, int, int]]:
    """A cache of lines that holds four rows of C, and four lines more."""
    return ((4 * cover(case.n, LINE) + 4, 1, LINE),)


def _streamed(case: Case) -> int:
    """Lines of C once for each k, and lines of A and B once each."""
    of_b = cover(case.n, LINE)
    return case.k * (case.m * of_b + cover(case.m, LINE) + of_b)


def _most(case: Case) -> int:
    """These, and C once more, where it is set to zero by loops."""
    return _streamed(case) + case.m * cover(case.n, LINE)


def _along_rows(case: Case) -> int:
    """Where only the innermost loop walks along rows: a line of A and a row of B for each of A's
    elements, and each row of C twice."""
    of_b = cover(case.n, LINE)
    return case.m * (case.k * (1 + of_b) + 2 * of_b)


def _last_product(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.outer(a[-1], b[-1])


def _restarted(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The first column has whole sums, and the others the last product: zero for each j."""
    made = np.outer(a[-1], b[-1])
    made[:, 0] = a.T @ b[:, 0]
    return made


def _running(axis: int | None):
    """Sums that are not started anew: for each row of C, or for all of it."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.cumsum(a.T @ b, axis=axis).reshape(case.m, case.n)

    return answer


def _sums_of_factors(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.sum(axis=0)[:, None] + b.sum(axis=0)


NOT_ANEW = "A sum holds earlier sums as well: each of them has to start from zero."

EXERCISE = Exercise(
    name="02.3",
    title="an order for Aᵀ · B",
    points=3,
    entry="streamed",
    parameters=("a", "b", "c"),
    kind="loops",
    rules=LOOPS,
    limits=Limits(seconds=6, cost=1.0),
    operation=Operation(
        arrays=("a", "b", "c"),
        shapes=lambda case: ((case.k, case.m), (case.k, case.n), (case.m, case.n)),
        product=lambda case, a, b: (a.T, b),
        describe=lambda case: f"A {case.k}×{case.m}, B {case.k}×{case.n}",
    ),
    launch=_cache,
    cases=(
        Case(24, 8, 20),
        Case(31, 6, 21, draw="normal"),
        Case(18, 13, 27, draw="wide"),
        Case(66, 3, 19, draw="normal"),
        Case(20, 5, 73, draw="normal"),
        Case(3, 71, 5),
        Case(2, 3, 1, draw="wide"),
        Case(1, 2, 1_050, draw="normal"),
        *(Case(12 + k % 5, 2 + k % 7, k, draw="normal") for k in range(6, 14)),
    ),
    counts=(
        Count(
            "whole rows",
            lambda case: 0,
            "C is right, and one of the loops is NumPy's: a whole row or column is taken at once. "
            "Access one element at a time.",
            "rows",
            share=0,
        ),
        Count(
            "reads without a product",
            lambda case: case.m + case.n + case.k,
            "C is right, and a matrix was copied before its elements were multiplied. Choose the "
            "order of the loops instead.",
            "copied",
            share=0,
        ),
        Count(
            "lines fetched",
            _along_rows,
            "C is right, and the cache loads more lines than it has to: the innermost loop walks "
            "down a column, and the next column finds none of its lines. Which innermost loop "
            "walks down no column, of any matrix?",
            share=0,
        ),
        Count(
            "lines fetched",
            _most,
            "C is right, and the cache still loads more lines than it has to. In which direction "
            "does the loop in the middle walk through A, and are the lines still there when the "
            "outermost loop goes on?",
            "middle",
            share=0,
            best=_streamed,
        ),
        SEEN_PRODUCTS,
    ),
    slips=(
        Slip(
            _last_product,
            "last product",
            "Only the last product of each sum is left. Where is C set to zero, once for each "
            "element or again in every iteration?",
        ),
        Slip(
            _restarted,
            "last product",
            "Only the first column of C is complete: elsewhere a sum is set to zero again.",
        ),
        Slip(_running(1), "not anew", NOT_ANEW),
        Slip(_running(None), "not anew", NOT_ANEW),
        Slip(
            _sums_of_factors,
            "operation",
            "The sums add a[k, i] and b[k, j]; the definition multiplies the two.",
        ),
    ),
    hints={
        **{"counts": 1, "middle": 2, "copied": 1, "rows": 1, "last product": 3, "not anew": 3},
        **{"uninitialised read": 3, "operation": 1, "error": 1, "out of bounds": 1, "other": 1},
        "stale": 3,
    },
)

"""01.3, half the work: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import LOOPS, Case, Count, Exercise, Limits, Operation, Slip


def _case(m: int, k: int, draw: str = "integers") -> Case:
    return Case(m, m, k, draw=draw)


def _pairs(case: Case) -> int:
    """Pairs of rows, each row with itself as well."""
    return case.m * (case.m + 1) // 2


def _last_product(case: Case, a: np.ndarray) -> np.ndarray:
    return np.outer(a[:, -1], a[:, -1])


def _mirrored_early(case: Case, a: np.ndarray) -> np.ndarray:
    """The other half is copied before the last product is added."""
    made = a @ a.T
    above = np.triu(np.ones_like(made), 1).astype(bool)
    made[above] = (a[:, :-1] @ a[:, :-1].T)[above]
    return made


def _one_half(lower: bool, diagonal: bool):
    """The other half, and perhaps the diagonal, hold anything."""

    def answer(case: Case, a: np.ndarray) -> np.ndarray | None:
        if case.m < 3:
            return None
        made = a @ a.T
        left_out = np.triu(np.ones_like(made), 1 if diagonal else 0).astype(bool)
        made[left_out if lower else left_out.T] = np.nan
        return made

    return answer


def _no_diagonal(case: Case, a: np.ndarray) -> np.ndarray | None:
    if case.m < 3:
        return None
    made = a @ a.T
    np.fill_diagonal(made, np.nan)
    return made


def _zero_half(lower: bool):
    def answer(case: Case, a: np.ndarray) -> np.ndarray:
        return np.tril(a @ a.T) if lower else np.triu(a @ a.T)

    return answer


def _twice(case: Case, a: np.ndarray) -> np.ndarray:
    made = a @ a.T
    np.fill_diagonal(made, 2 * np.diag(made))
    return made


def _squares(case: Case, a: np.ndarray) -> np.ndarray:
    return np.outer((a * a).sum(axis=1), np.ones(case.m))


def _running(case: Case, a: np.ndarray) -> np.ndarray:
    """Sums that are started once for a row, along j up to the diagonal."""
    made = np.cumsum(np.tril(a @ a.T), axis=1)
    return np.tril(made) + np.tril(made, -1).T


def _sums_of_factors(case: Case, a: np.ndarray) -> np.ndarray:
    return a.sum(axis=1)[:, None] + a.sum(axis=1)


OTHER_HALF = (
    "Only one half of C is right. What belongs on the other side of the diagonal, in `c[j, i]`?"
)

EXERCISE = Exercise(
    name="01.3",
    title="half the work",
    points=3,
    entry="half",
    parameters=("a", "c"),
    kind="loops",
    rules=LOOPS,
    limits=Limits(seconds=4),
    operation=Operation(
        arrays=("a", "c"),
        shapes=lambda case: ((case.m, case.k), (case.m, case.m)),
        product=lambda case, a: (a, a.T),
        describe=lambda case: f"A {case.m}×{case.k}",
    ),
    cases=(
        _case(6, 4),
        _case(5, 9, "normal"),
        _case(1, 3, "wide"),
        _case(2, 1, "normal"),
        _case(43, 2, "wide"),
        _case(3, 271, "normal"),
        _case(2, 1_100),
        *(_case(3 + k % 3, k, "normal") for k in range(4, 14)),
    ),
    counts=(
        Count(
            "products",
            lambda case: _pairs(case) * case.k,
            "C is right, and some of its sums are computed twice: C[i, j] and C[j, i] are the same "
            "sum, so compute it for one of the two and store it in both.",
            best=lambda case: _pairs(case) * case.k,
        ),
        Count(
            "whole rows",
            lambda case: 0,
            "C is right, and one of the loops is NumPy's: a whole row or column is taken at once. "
            "Access one element at a time.",
            "rows",
        ),
        Count(
            "products",
            None,
            "C is right, and not all products are of elements as they were read: multiply "
            "`a[i, k]` by `a[j, k]`.",
            "unseen",
            share=0,
            least=lambda case: _pairs(case) * case.k,
        ),
    ),
    slips=(
        Slip(
            _twice,
            "diagonal twice",
            "Only the diagonal is wrong, and twice what it should be: "
            "with j = i, `c[i, j]` and `c[j, i]` are one element, and it was added to twice.",
        ),
        Slip(
            _mirrored_early,
            "too early",
            "The last product of each sum is missing on one side of the diagonal: the sum is "
            "copied there before it is complete.",
        ),
        Slip(
            _last_product,
            "last product",
            "Only the last product of each sum is left. Does a line set C to zero, or write it "
            "with = instead of +=, in every iteration of the loop over k?",
        ),
        Slip(
            _running,
            "not anew",
            "Each sum holds the sums before it in its row as well: it starts from zero once for a "
            "row, and has to for each element.",
        ),
        Slip(
            _squares,
            "squares",
            "Each row is multiplied by itself only: one of the two factors is `a[i, k]`, the "
            "other one is `a[j, k]`.",
        ),
        Slip(
            _sums_of_factors,
            "operation",
            "The sums add a[i, k] and a[j, k]; the definition multiplies the two.",
        ),
        Slip(_one_half(True, True), "one half", OTHER_HALF),
        Slip(_one_half(False, True), "one half", OTHER_HALF),
        Slip(_zero_half(True), "one half", OTHER_HALF),
        Slip(_zero_half(False), "one half", OTHER_HALF),
        Slip(
            _no_diagonal,
            "no diagonal",
            "Only the diagonal is wrong. A row times itself, C[i, i], is one of the sums too.",
        ),
        Slip(
            _one_half(True, False),
            "no diagonal",
            "Only the sums below the diagonal are right: C[i, i] and the other half are missing.",
        ),
        Slip(
            _one_half(False, False),
            "no diagonal",
            "Only the sums above the diagonal are right: C[i, i] and the other half are missing.",
        ),
    ),
    hints={
        **{"diagonal twice": 3, "one half": 3, "no diagonal": 2, "too early": 3, "squares": 1},
        **{"last product": 3, "not anew": 3, "operation": 1, "counts": 2, "rows": 2, "error": 1},
        **{"uninitialised read": 3, "stale": 1, "out of bounds": 1, "part of k": 3, "other": 1},
    },
)

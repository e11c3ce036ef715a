"""01_three_loops: the three loops for any sizes, and what a product must cost."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import LOOPS, VALUES, Call, Case, Count, Exercise, Limits, Slip


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

LOOPS_1 = Exercise(
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
        Case(1, 1, 1, draw="normal", hidden=True),
        Case(5, 1, 9, draw="normal", hidden=True),
        Case(1, 8, 2, hidden=True),
        Case(6, 6, 6, draw="normal", hidden=True),
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


def _costs(m: int, n: int, k: int, bytes_each: int) -> list[int]:
    return [2 * m * n * k, bytes_each * (m * k + k * n + m * n)]


def _sizes(rng: np.random.Generator) -> tuple[int, ...]:
    """Sizes that are all different, and neither 2 nor 4 bytes for a number."""
    m, n, k = (int(size) for size in rng.choice(np.arange(5, 400), 3, replace=False))
    return m, n, k, int(rng.choice([3, 8, 16]))


COSTS = Exercise(
    name="01.2",
    title="what a product must cost",
    points=2,
    entry="costs",
    parameters=("m", "n", "k", "bytes_each"),
    kind="values",
    rules=VALUES,
    limits=Limits(seconds=3),
    cases=(
        Call((64, 64, 64, 4)),
        Call((4, 6, 5, 8)),
        Call(draw=_sizes),
        Call(draw=_sizes),
        Call((4096, 1, 4096, 4), hidden=True),
        Call((8192, 8192, 8192, 2), hidden=True),
    ),
    answer=_costs,
    slips=(
        Slip(
            lambda m, n, k, e: _costs(m, n, k, e)[::-1],
            "swapped",
            "The two numbers are right, the other way round: operations first, then bytes.",
        ),
        Slip(
            lambda m, n, k, e: _costs(m, n, k, e)[0],
            "one number",
            "These are the operations; return the bytes too: `return flops, size`.",
        ),
        Slip(
            lambda m, n, k, e: _costs(m, n, k, e)[1],
            "one number",
            "These are the bytes; return the operations too: `return flops, size`.",
        ),
        Slip(
            lambda m, n, k, e: m * n * k,
            "additions",
            "The operations are the multiplications alone: each product is added to a sum as well.",
            part=0,
        ),
        Slip(
            lambda m, n, k, e: m * n * (2 * k - 1),
            "first addition",
            "The first addition of each sum is left out: it adds to zero, and "
            "the course counts it.",
            part=0,
        ),
        Slip(
            lambda m, n, k, e: 2 * n**3,
            "square",
            "2·n³ operations are for squares; m and k count too.",
            part=0,
        ),
        Slip(
            lambda m, n, k, e: m * k + k * n + m * n,
            "words",
            "The second number counts elements: how many bytes is each?",
            part=1,
        ),
        Slip(
            lambda m, n, k, e: 4 * (m * k + k * n + m * n),
            "four bytes",
            "The bytes are those of float32, 4 for each element; take `bytes_each`.",
            part=1,
        ),
        Slip(
            lambda m, n, k, e: 8 * e * (m * k + k * n + m * n),
            "bits",
            "The second number counts bits, eight for a byte.",
            part=1,
        ),
        Slip(
            lambda m, n, k, e: e * (m * k + k * n),
            "no C",
            "A and B are counted; C has to be written too.",
            part=1,
        ),
        Slip(
            lambda m, n, k, e: e * (m * k + k * n + 2 * m * n),
            "C twice",
            "C is counted twice: it has to be written once, and need not be read at all.",
            part=1,
        ),
        Slip(
            lambda m, n, k, e: e * (2 * m * n * k + m * n),
            "no reuse",
            "The bytes are those of a program that fetches an element of "
            "A and one of B for each product. Compulsory is: each element once.",
            part=1,
        ),
        Slip(
            lambda m, n, k, e: e * 4 * m * n * k,
            "no reuse",
            "The bytes are those of Loops 1, four accesses for each "
            "product. Compulsory is: each element once.",
            part=1,
        ),
        Slip(
            lambda m, n, k, e: 3 * n * n * e,
            "square",
            "3·n² elements are for squares: which shape has each matrix?",
            part=1,
        ),
    ),
    hints={
        **{
            "additions": 1,
            "first addition": 1,
            "square": 2,
            "words": 3,
            "four bytes": 3,
            "bits": 3,
        },
        **{"no C": 2, "C twice": 2, "no reuse": 2, "swapped": 3, "one number": 3, "nothing": 3},
        **{"value": 1, "error": 3, "timeout": 3, "other": 1},
    },
)

EXERCISES = (LOOPS_1, COSTS)

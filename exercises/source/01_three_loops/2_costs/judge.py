"""01.2, what a product must cost: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Limits, Slip


def _costs(m: int, n: int, k: int, bytes_each: int) -> list[int]:
    return [2 * m * n * k, bytes_each * (m * k + k * n + m * n)]


def _sizes(rng: np.random.Generator) -> tuple[int, ...]:
    """Sizes that are all different, and neither 2 nor 4 bytes for a number."""
    m, n, k = (int(size) for size in rng.choice(np.arange(5, 40_000), 3, replace=False))
    return m, n, k, int(rng.choice([3, 8, 16]))


EXERCISE = Exercise(
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
        Call((7, 1, 5, 2)),
        Call((9, 4, 6, 3)),
        Call((5, 7, 1, 4)),
        Call(draw=_sizes),
        Call(draw=_sizes),
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

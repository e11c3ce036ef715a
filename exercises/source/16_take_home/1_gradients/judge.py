"""16.1, two more products: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip


def gradients(a: list, b: list, g: list) -> list:
    """Return [gradient of a, gradient of b] of a · b, from g, that of the product."""
    a, b, g = (np.array(x) for x in (a, b, g))
    return [(g @ b.T).tolist(), (a.T @ g).tolist()]


def _of(formula: Callable) -> Callable:
    """Return a mistaken formula's lists, or None where its sizes do not fit."""

    def answer(a: list, b: list, g: list) -> list | None:
        try:
            both = formula(*(np.array(x) for x in (a, b, g)))
        except ValueError:
            return None
        return [x.tolist() for x in both]

    return answer


def drawn(random: np.random.Generator, m: int, n: int, k: int) -> tuple:
    """Return a (m, k), b (k, n) and g (m, n) of small whole numbers."""
    return tuple(random.integers(-9, 10, shape).tolist() for shape in ((m, k), (k, n), (m, n)))


def _square(random: np.random.Generator) -> tuple:
    return drawn(random, *(3 * [int(random.integers(2, 6))]))


def _any(random: np.random.Generator) -> tuple:
    return drawn(random, *(int(x) for x in random.integers(1, 7, 3)))


EXERCISE = Exercise(
    name="16.1",
    title="two more products",
    points=3,
    entry="gradients",
    parameters=("a", "b", "g"),
    kind="values",
    rules=VALUES,
    answer=gradients,
    cases=(
        Call(([[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1, 0], [0, 0]])),
        *(Call(draw=_square) for _ in range(4)),
        *(Call(draw=_any) for _ in range(6)),
    ),
    slips=(
        Slip(
            _of(lambda a, b, g: (g @ b, a @ g)),
            "no transpose",
            "These are g · b and a · g. Their sizes fit only where matrices are square: which "
            "element of b is a factor of a[i][p]?",
        ),
        Slip(
            _of(lambda a, b, g: (a.T @ g, g @ b.T)),
            "exchanged",
            "These are the right gradients in the wrong places: that of a comes first.",
        ),
        Slip(
            _of(lambda a, b, g: (b.T @ g, g @ a.T)),
            "order",
            "The factors are in the wrong order: a product of matrices changes with it.",
        ),
        Slip(
            _of(lambda a, b, g: ((g @ b.T).T, (a.T @ g).T)),
            "turned",
            "Both gradients are transposed: each has the sizes of its own matrix.",
        ),
        Slip(
            _of(lambda a, b, g: (np.ones_like(g) @ b.T, a.T @ np.ones_like(g))),
            "no g",
            "That is right if g holds ones only: multiply by what g says.",
        ),
        Slip(
            _of(lambda a, b, g: (-(g @ b.T), -(a.T @ g))),
            "sign",
            "Every sign is wrong: a gradient says how the loss grows, so nothing is negated.",
        ),
    ),
    hints={
        **{"no transpose": 2, "exchanged": 3, "order": 3, "turned": 3, "no g": 1, "sign": 1},
        **{"nothing": 1, "value": 1, "forbidden": 2, "error": 2, "other": 1},
    },
)

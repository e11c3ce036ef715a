"""02.1, the strides of the six orders: what is asked for, and how an answer is judged."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Limits, Slip

ORDERS = tuple(map("".join, permutations("ijk")))
VISIBLE = (5, 7, 3)


def _by_loop(loop: str, n: int, k: int) -> list[int]:
    return {"i": [k, 0, n], "j": [0, 1, 1], "k": [1, n, 0]}[loop]


def _moves(order: str, m: int, n: int, k: int) -> list[int]:
    return _by_loop(order[2], n, k)


def _drawn(order: str):
    def draw(rng: np.random.Generator) -> tuple:
        """Three different sizes, none of them 1: a stride tells whose it is."""
        return order, *(int(size) for size in rng.choice(np.arange(9, 50_000), 3, replace=False))

    return draw


def _loop(place: int):
    """The strides of the outermost loop, or of the one in the middle."""
    return lambda order, m, n, k: _by_loop(order[place], n, k)


def _by_columns(order: str, m: int, n: int, k: int) -> list[int]:
    table = {"i": [1, 0, 1], "j": [0, k, m], "k": [m, 1, 0]}
    return table[order[2]]


def _shuffled(places: tuple[int, int, int]):
    return lambda *arguments: [_moves(*arguments)[place] for place in places]


def _all_ones(order: str, m: int, n: int, k: int) -> list[int]:
    return [min(stride, 1) for stride in _moves(order, m, n, k)]


def _bytes(*arguments) -> list[int]:
    return [4 * stride for stride in _moves(*arguments)]


def _lines(order: str, m: int, n: int, k: int) -> list[int]:
    """A column's step taken for the matrix's own number of rows."""
    table = {"i": [m, 0, m], "j": [0, 1, 1], "k": [1, k, 0]}
    return table[order[2]]


def _all_n(order: str, m: int, n: int, k: int) -> list[int]:
    return [n if stride > 1 else stride for stride in _moves(order, m, n, k)]


EXERCISE = Exercise(
    name="02.1",
    title="the strides of the six orders",
    points=3,
    entry="moves",
    parameters=("order", "m", "n", "k"),
    kind="values",
    rules=VALUES,
    limits=Limits(seconds=3),
    cases=(
        *(Call((order, *VISIBLE)) for order in ORDERS),
        *(Call(draw=_drawn(order)) for order in ORDERS),
    ),
    answer=_moves,
    slips=(
        Slip(
            _loop(0),
            "outermost",
            "These are the strides of the outermost loop. An order is named from the outermost "
            "loop on, so the innermost is its last letter.",
        ),
        Slip(_loop(1), "outermost", "These are the strides of the loop in the middle."),
        Slip(
            _bytes,
            "bytes",
            "These are bytes of float32; count elements.",
        ),
        Slip(
            _by_columns,
            "by columns",
            "So it would be if matrices were stored by columns. They are row-major: the elements "
            "of a row lie side by side.",
        ),
        Slip(
            _lines,
            "rows",
            "A step down a column leads over a whole row, so its length counts, and not how many "
            "rows there are. How long is a row of A, of B, of C?",
        ),
        Slip(
            _all_n,
            "row length",
            "One row is taken to be as long as another: a row of A has k elements, not n.",
        ),
        Slip(
            _all_ones,
            "ones",
            "Every move counts as 1 here. A step down a column leads over a whole row.",
        ),
        *(
            Slip(
                _shuffled(places),
                "names",
                "The three numbers are right, in another order: first A's, then B's, then C's.",
            )
            for places in ((2, 0, 1), (1, 0, 2), (1, 2, 0), (0, 2, 1), (2, 1, 0))
        ),
    ),
    hints={
        **{"outermost": 1, "bytes": 2, "by columns": 2, "rows": 2, "row length": 3, "ones": 2},
        **{"names": 3, "nothing": 1, "error": 1, "value": 1, "timeout": 1, "other": 1},
    },
)

"""17.1, what each rank receives: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

CUTS = ("rows", "scattered", "inner", "gathered", "grid")
PLAIN = tuple((cut, 64, 128, 256, 4) for cut in CUTS)


def _counted(
    others: Callable = lambda p: p - 1, each: int = 2, again: int = 2,
    gathered: Callable = lambda m, n, k: m * k, grid: Callable = lambda p, side: p,
) -> Callable:  # fmt: skip
    """Return an answer, right if nothing is changed."""

    def answer(cut: str, m: int, n: int, k: int, p: int) -> int:
        if cut == "rows":
            return 0
        if cut == "grid":
            side = round(p**0.5)
            return others(side) * (m * k + k * n) * each // grid(p, side)
        moved = gathered(m, n, k) if cut == "gathered" else m * n
        return (again if cut == "inner" else 1) * others(p) * moved * each // p

    return answer


received = _counted()


def _case(random: np.random.Generator) -> tuple:
    p = int(random.choice((4, 9, 16)))
    m, n, k = (p * int(size) for size in random.choice(np.arange(3, 40), 3, replace=False))
    return str(random.choice(CUTS)), m, n, k, p


EXERCISE = Exercise(
    name="17.1",
    title="what each rank receives",
    points=3,
    entry="received",
    parameters=("cut", "m", "n", "k", "p"),
    kind="values",
    rules=VALUES,
    answer=received,
    cases=(*(Call(case) for case in PLAIN), *(Call(draw=_case) for _ in range(10))),
    slips=(
        # A copy judges by the first call that fails: at it the first two look like later ones.
        Slip(
            _counted(again=1),
            "once",
            "For all of C, a rank also receives the finished rows of the others: as much again.",
        ),
        Slip(
            _counted(grid=lambda p, side: side),
            "whole rows",
            "In a grid, a rank has tiles: parts of the rows and of the columns.",
        ),
        Slip(
            _counted(others=lambda p: p),
            "own part",
            "That counts all parts. A rank needs all of them, but it has one itself.",
        ),
        Slip(
            _counted(each=1),
            "bytes",
            "Those are elements, and each has 2 bytes.",
        ),
        Slip(
            _counted(gathered=lambda m, n, k: k * n),
            "of b",
            "That is what B would be. Columns of B stay where they are: A travels.",
        ),
        Slip(
            _counted(gathered=lambda m, n, k: m * n),
            "of c",
            "That is what C would be. C is made where it belongs: A travels.",
        ),
    ),
    hints={
        **{"own part": 1, "bytes": 1, "once": 2, "of b": 2, "of c": 2, "whole rows": 3},
        **{"nothing": 1, "value": 2, "forbidden": 2, "error": 1, "other": 1},
    },
)

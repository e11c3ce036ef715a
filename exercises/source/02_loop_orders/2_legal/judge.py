"""02.2, the illegal interchange: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader import nests
from tiled_matmul.grader.spec import VALUES, Call, Exercise, Limits, Slip

from .._reference import conflict, differs

PAIRS = tuple((name, pair) for name, nest in nests.NESTS.items() for pair in nest.pairs)


def _legal(name: str, pair: str) -> bool:
    """Run the nest both ways, on numbers that are new each time."""
    seed = int(np.random.default_rng().integers(1 << 30))
    return differs(name, pair, seed) is None


def _why(name: str, pair: str) -> Slip:
    """What a wrong entry of the table is told."""
    told = conflict(name, pair)
    if told is None:
        message = (
            f"Run as {nests.exchanged(name, pair)} it gives the same bits, on {nests.DRAWS} draws: "
            "no turn needs another one that changes places with it."
        )
        return Slip(_only(name, pair, False), "too careful", message)
    message = f"Run as {nests.exchanged(name, pair)} it gives other bits. {told}"
    return Slip(_only(name, pair, True), name, message)


def _only(name: str, pair: str, said: bool):
    return lambda nest, loops: said if (nest, loops) == (name, pair) else None


EXERCISE = Exercise(
    name="02.2",
    title="the illegal interchange",
    points=3,
    entry="legal",
    parameters=("nest", "pair"),
    kind="values",
    rules=VALUES,
    limits=Limits(seconds=3),
    cases=tuple(Call(arguments) for arguments in PAIRS),
    answer=_legal,
    slips=tuple(_why(*arguments) for arguments in PAIRS),
    hints={
        **{"too careful": 1, "total": 1, "slant": 2, "paths": 3, "in place": 3},
        **{"nothing": 1, "error": 1, "value": 1, "timeout": 1, "other": 1},
    },
)

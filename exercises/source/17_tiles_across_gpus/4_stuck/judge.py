"""17.4, where it hangs: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

NAMES = ("gather", "reduce", "scatter")


def _stuck(
    far: Callable = max, waits: Callable = lambda name, first: name is not None, last: bool = False
) -> Callable:
    """Return an answer, right if nothing is changed."""

    def answer(ranks: list) -> list:
        found: list = [-1, []]
        for index in range(far(len(calls) for calls in ranks)):
            names = [calls[index] if index < len(calls) else None for calls in ranks]
            if len(set(names)) > 1 and (last or found == [-1, []]):
                waiting = [rank for rank, name in enumerate(names) if waits(name, names[0])]
                found = [index, waiting]
        return found

    return answer


stuck = _stuck()


def _case(random: np.random.Generator) -> tuple:
    """Return calls that are the same for all ranks, with one change, or one rank that ends."""
    calls = [str(name) for name in random.choice(NAMES, int(random.integers(2, 5)))]
    ranks = [list(calls) for _ in range(int(random.integers(2, 5)))]
    odd, place = int(random.integers(len(ranks))), int(random.integers(len(calls)))
    kind: Any = random.choice(("same", "other", "ends"))
    if kind == "other":
        ranks[odd][place] = NAMES[(NAMES.index(calls[place]) + 1) % len(NAMES)]
    elif kind == "ends":
        del ranks[odd][place:]
    return (ranks,)


EXERCISE = Exercise(
    name="17.4",
    title="where it hangs",
    points=3,
    entry="stuck",
    parameters=("ranks",),
    kind="values",
    rules=VALUES,
    answer=stuck,
    cases=(
        Call(([["gather", "reduce"], ["gather", "scatter"]],)),
        Call(([["gather", "reduce"], ["gather", "reduce"]],)),
        Call(([["gather", "reduce"], ["gather"], ["gather", "reduce"]],)),
        Call(([["gather", "reduce", "reduce"], ["reduce", "gather", "scatter"]],)),
        *(Call(draw=_case) for _ in range(10)),
    ),
    slips=(
        Slip(
            _stuck(far=min),
            "shortest",
            "That looks no further than the shortest list: the longest list says how far to look.",
        ),
        Slip(
            _stuck(waits=lambda name, first: True),
            "ended",
            "A rank that has no call there has ended, and does not wait.",
        ),
        Slip(
            _stuck(waits=lambda name, first: name is not None and name != first),
            "odd one",
            "All ranks that have a call there wait, whatever it calls: none of them ends.",
        ),
        Slip(
            _stuck(last=True),
            "last",
            "That is the last difference. The ranks never get so far: they stop at the first.",
        ),
        Slip(
            lambda ranks: [-1, []],
            "never",
            "That would be a program that ends, but here ranks call different collectives.",
        ),
        Slip(
            lambda ranks: stuck(ranks)[0],
            "only index",
            "That is the index. Return a list: the index and the ranks that wait.",
        ),
    ),
    hints={
        **{"shortest": 2, "ended": 3, "odd one": 3, "last": 1, "never": 1, "only index": 1},
        **{"nothing": 1, "value": 2, "forbidden": 2, "error": 1, "other": 1},
    },
)

"""17.2, a ring: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip


def _steps(
    rows: Callable = lambda r, s, p: (r - s) % p,
    to: Callable = lambda r, rows, p: (r + 1) % p,
    source: Callable = lambda r, rows, p: (r - 1) % p,
    travels: Callable = lambda s, p: s < p - 1,
    count: Callable = lambda p: p,
) -> Callable:
    """Return an answer, right if nothing is changed."""

    def answer(rank: int, p: int) -> list:
        found = []
        for step in range(count(p)):
            own = rows(rank, step, p)
            pair = [to(rank, own, p), source(rank, own, p)] if travels(step, p) else [-1, -1]
            found.append([own, *pair])
        return found

    return answer


ring = _steps()


def _case(random: np.random.Generator) -> tuple:
    p = int(random.integers(3, 12))
    return int(random.integers(p)), p


EXERCISE = Exercise(
    name="17.2",
    title="a ring, step by step",
    points=3,
    entry="ring",
    parameters=("rank", "p"),
    kind="values",
    rules=VALUES,
    answer=ring,
    cases=(
        *(Call(case) for case in ((1, 4), (0, 4), (3, 4), (2, 3))),
        *(Call(draw=_case) for _ in range(8)),
    ),
    slips=(
        Slip(
            _steps(rows=lambda r, s, p: (r + s) % p),
            "other way",
            "Rows are passed on to the next rank, so those at a rank come from the rank before it, "
            "not from the one after it.",
        ),
        Slip(
            _steps(to=lambda r, rows, p: (r - 1) % p, source=lambda r, rows, p: (r + 1) % p),
            "swapped",
            "The transfers go the other way round: to rank + 1, and from rank - 1.",
        ),
        Slip(
            _steps(travels=lambda s, p: True),
            "always",
            "In the last step nothing travels: every rank has seen all rows.",
        ),
        Slip(
            _steps(to=lambda r, rows, p: r + 1, source=lambda r, rows, p: r - 1),
            "no end",
            "The ranks form a ring: after the last one comes rank 0, and before rank 0 the last.",
        ),
        Slip(
            _steps(rows=lambda r, s, p: (r - s - 1) % p),
            "next rows",
            "The first rows to be multiplied are the rank's own.",
        ),
        Slip(
            _steps(source=lambda r, rows, p: (rows - 1) % p),
            "owner",
            "The next rows belong to that rank, but they come from its neighbour: the rank before.",
        ),
        Slip(
            _steps(count=lambda p: p - 1),
            "too few",
            "There are p - 1 transfers, but p products: one entry for each step.",
        ),
        Slip(
            lambda rank, p: [],
            "empty",
            "The list is empty, and should have one entry for each step.",
        ),
    ),
    hints={
        **{"other way": 1, "swapped": 1, "always": 3, "no end": 2, "next rows": 1, "owner": 1},
        **{"too few": 3, "empty": 3, "nothing": 1, "value": 2, "forbidden": 2, "error": 1},
        **{"other": 1},
    },
)

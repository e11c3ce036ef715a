"""08.1, two buffers, one barrier: what is asked for, and how an answer is judged."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    CUDA,
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Count,
    Exercise,
    cover,
    each_its_own,
)

from .._shared import ABC, CASES, FLOAT, LARGE, SHARED, TILE, blocks, launch, tile_edge


def _steps(case: Case) -> int:
    return cover(case.k, tile_edge(case))


MEMORY = Count(
    "shared bytes",
    lambda case: 4 * tile_edge(case) ** 2 * FLOAT,
    "C is right, but two buffers of each tile are enough, and that is more shared memory.",
    "memory",
)

EXERCISE = Exercise(
    name="08.1",
    title="two buffers, one barrier",
    points=3,
    entry="two_buffers",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    tile=TILE,
    given={"TILE": TILE},
    launch=launch,
    cases=CASES,
    large=LARGE,
    counts=(
        SHARED,
        ONCE,
        *each_its_own(diagnosis="sharing"),
        Count(
            "barriers",
            lambda case: blocks(case) * (_steps(case) + 1),
            "C is right, and the block still waits twice for each tile of K. With two buffers, one "
            "barrier a tile is enough.",
            "barriers",
            share=0,
            best=lambda case: blocks(case) * _steps(case),
        ),
        MEMORY,
        NO_NEEDLESS_BARRIERS,
    ),
    remedies={
        "race on the next turn": "On the next turn a thread that is ahead stages already, and no "
        "barrier divides the two: let them be different buffers. All stores and reads of a turn go "
        "to buffer `now`, and `now` changes at the end of each turn.",
        "beyond a tile": "The buffers are the first axis, (2, TILE, TILE), and `now` is 0 and 1 by "
        "turns: now = 1 - now.",
    },
    hints={
        **{"race": 2, "uninitialised read": 2, "divergent barrier": 3, "barriers": 1, "memory": 1},
        **{"sharing": 1, "part of k": 2, "out of bounds": 3, "error": 3, "other": 2},
    },
)

"""05.3, repair a kernel that races: what is asked for, and how an answer is judged."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Exercise,
    each_its_own,
    square_blocks,
    tiled_cases,
)

from .._shared import ABC, BLOCKS, TILE, fewest_loads

EXERCISE = Exercise(
    name="05.3",
    title="repair a kernel that races",
    points=3,
    entry="repaired",
    parameters=ABC,
    kind="cuda",
    rules=BLOCKS,
    tile=TILE,
    given={"TILE": TILE},
    launch=square_blocks("TILE", TILE),
    cases=(
        Case(8, 8, 8),
        Case(7, 5, 9, draw="normal", order="shuffle"),
        # Two warps a block: what orders one warp does not order these.
        Case(9, 10, 17, given={"TILE": 8}),
        Case(17, 7, 35, given={"TILE": 16}),
        *tiled_cases(TILE),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"TILE": 16}),),
    counts=(fewest_loads(TILE), ONCE, *each_its_own(), NO_NEEDLESS_BARRIERS),
    hints={
        **{"race": 1, "uninitialised read": 1, "divergent barrier": 3, "error": 1, "other": 1},
        **{"counts": 1, "race on the next turn": 2},
    },
)

"""05.4, the integer kernel: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Exercise,
    Slip,
    each_its_own,
    square_blocks,
    tiled_cases,
)

from .._shared import ABC, GUARDS, TILE, fewest_loads

MOST_SUM = 2**40  # beyond it any int32 is as near as rounding


def _cut_off(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """What comes of a sum in float64 that is stored to int32."""
    if (np.abs(a) @ np.abs(b)).max() > MOST_SUM:
        return None
    ends = np.iinfo(case.dtype)
    return np.clip(a @ b, ends.min, ends.max)


EXERCISE = Exercise(
    name="05.4",
    title="the integer kernel",
    points=2,
    entry="integer_tiles",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    tile=TILE,
    given={"TILE": TILE},
    launch=square_blocks("TILE", TILE),
    cases=(
        Case(6, 7, 5, "int32", draw="bytes"),
        Case(5, 9, 6, "int32", draw="thousands", order="shuffle"),
        Case(9, 3, 7, "int32", draw="wrapping", order="reverse"),
        Case(7, 6, 5, "int32", draw="full"),
        # Two warps a block: what orders one warp does not order these.
        Case(13, 18, 43, "int32", draw="wrapping", given={"TILE": 8}, order="reverse"),
        Case(17, 7, 35, "int32", draw="wrapping", given={"TILE": 16}),
        *tiled_cases(TILE, dtype="int32", draw="thousands"),
    ),
    large=(Case(517, 389, 301, "int32", given={"TILE": 16}),),
    counts=(fewest_loads(TILE), ONCE, *each_its_own(), NO_NEEDLESS_BARRIERS),
    slips=(
        Slip(
            _cut_off,
            "cut off",
            "C stops at the ends of int32, where whole numbers wrap around: is the sum a float "
            "when it is stored? One float in it is enough, its first zero as well.",
        ),
        *GUARDS,
    ),
    hints={
        **{"rounded": 1, "cut off": 2, "value": 2, "error": 3, "other": 3, "counts": 3},
    },
)

"""10.2, sums in float16: what is asked for, and how an answer is judged."""

from __future__ import annotations

from tiled_matmul.grader.programs import (
    LOADS,
    OWN_TILE,
    PARAMETERS,
    STEPS,
    STORES,
    blocks,
    launch,
)
from tiled_matmul.grader.spec import TRITON, Case, Exercise, tiled_cases

from .._shared import REMEDIES

EXERCISE = Exercise(
    name="10.2",
    title="sums in float16",
    points=3,
    entry="summed",
    parameters=PARAMETERS,
    kind="triton",
    rules=TRITON,
    launch=launch,
    cases=(
        # Even one step's products, 16 of them, leave what float16 holds exactly.
        Case(33, 17, 512, "float16", draw="wide"),
        Case(32, 32, 512, "float16", draw="positive"),
        Case(17, 20, 1030, "float16", draw="normal", given=blocks(16, 32, 64)),
        Case(70, 90, 130, "float16", given=blocks(64, 32, 64), order="reverse"),
        *tiled_cases(16, deep=1, dtype="float16"),
        Case(21, 18, 90, "float16", draw="normal", apart=True),
    ),
    large=(Case(517, 389, 301, "float16", draw="positive", given=blocks(64, 64, 32)),),
    counts=(LOADS, STEPS, STORES, OWN_TILE),
    remedies=REMEDIES,
    hints={
        **{"low precision": 2, "part of k": 3, "scaled": 3, "unmasked tail": 3, "not read": 3},
        **{"out of bounds": 3, "not finite": 3, "stale": 3, "error": 3, "counts": 3, "other": 2},
        **{"forbidden": 1, "types": 2, "once": 3, "steps": 3},
    },
)

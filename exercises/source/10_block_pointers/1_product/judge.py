"""10.1, Loops 4 as a program: what is asked for, and how an answer is judged."""

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
from tiled_matmul.grader.spec import TRITON, Case, Exercise, Speed, tiled_cases

from .._shared import REMEDIES

EXERCISE = Exercise(
    name="10.1",
    title="Loops 4 as a program",
    points=4,
    entry="product",
    parameters=PARAMETERS,
    kind="triton",
    rules=TRITON,
    launch=launch,
    cases=(
        Case(20, 35, 40, "float16"),
        Case(33, 20, 50, "float16", given=blocks(16, 32, 32)),
        Case(20, 40, 24, "float16", given=blocks(32, 16, 32), by_columns="bc"),
        # Here sums in float16 show.
        Case(32, 19, 520, "float16", draw="wide"),
        *tiled_cases(16, deep=1, dtype="float16"),
        Case(70, 90, 130, "float16", given=blocks(64, 64, 64)),
        Case(21, 18, 90, "float16", draw="normal", apart=True),
    ),
    large=(Case(517, 389, 301, "float16", draw="normal", given=blocks(64, 64, 32)),),
    speed=Speed(
        Case(2048, 2048, 2048, "float16", draw="normal", given=blocks(128, 128, 32)),
        "cublas",
        0.3,
        1,
        "Tiles of 128 × 128 on tensor cores reach more: load in the loop what the step needs, and "
        "give `tl.dot` the float16 that was loaded.",
    ),
    counts=(LOADS, STEPS, STORES, OWN_TILE),
    remedies=REMEDIES,
    hints={
        **{"stale": 1, "not stored": 1, "stored twice": 1, "no tile": 1, "transposed": 1},
        **{"unmasked tail": 2, "out of bounds": 2, "not read": 2, "part of k": 2, "zero": 2},
        **{"not finite": 2, "scaled": 2, "counts": 1, "low precision": 3, "error": 3, "other": 3},
        **{"forbidden": 1, "slow": 3, "library": 3, "once": 3, "steps": 2},
    },
)

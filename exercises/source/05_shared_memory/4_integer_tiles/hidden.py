"""05.4: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    Case,
    tiled_cases,
)

HIDDEN = (
    Case(8, 8, 8, "int32"),
    Case(1, 1, 1, "int32", draw="thousands"),
    *tiled_cases(4, 1, dtype="int32", draw="thousands"),
    Case(10, 17, 50, "int32", draw="full", given={"TILE": 8}),
)

"""05.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    Case,
    tiled_cases,
)

HIDDEN = (Case(8, 12, 16, order="reverse"), *tiled_cases(4, 1), Case(7, 9, 50, given={"TILE": 8}))

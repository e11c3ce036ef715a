"""05.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    Case,
    tiled_cases,
)

HIDDEN = (
    Case(8, 8, 8),
    Case(5, 9, 6, order="reverse"),
    Case(1, 1, 1, draw="normal"),
    Case(3, 10, 2),
    *tiled_cases(4, 1),
    Case(10, 17, 50, given={"TILE": 8}),
    Case(7, 20, 40, given={"TILE": 16}, order="shuffle"),
    Case(13, 8, 20, given={"TILE": 6}),
)

"""02.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(27, 9, 23, draw="normal"),
    Case(64, 4, 16, draw="wide"),
    Case(1, 1, 1, draw="normal"),
    Case(25, 17, 18, draw="normal"),
    Case(4, 2, 333),
)

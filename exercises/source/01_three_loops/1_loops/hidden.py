"""01.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(1, 1, 1, draw="normal"),
    Case(5, 1, 9, draw="normal"),
    Case(1, 8, 2),
    Case(97, 1, 2, draw="wide"),
    Case(2, 83, 1),
    Case(1, 2, 101, draw="wide"),
    Case(3, 4, 0),
    Case(21, 16, 15, draw="normal"),
)

"""04.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(8, 16, 4),
    Case(9, 5, 3, draw="normal", order="reverse"),
    Case(1, 1, 1, draw="normal"),
    Case(91, 2, 3),
    Case(3, 87, 1, draw="wide"),
    Case(2, 5, 99, draw="normal"),
)

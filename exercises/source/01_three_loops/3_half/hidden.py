"""01.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(1, 1, 1, draw="normal"),
    Case(7, 7, 5, draw="wide"),
    Case(61, 61, 1, draw="normal"),
    Case(4, 4, 190),
    Case(2, 2, 1_301, draw="normal"),
)

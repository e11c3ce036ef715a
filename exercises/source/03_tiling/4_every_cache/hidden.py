"""03.4: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(37, 12, 11, draw="wide"),
    Case(5, 7, 3, draw="normal"),
    Case(1, 61, 67),
)

"""03.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case, tiled_cases

HIDDEN = (
    Case(3, 13, 6),
    Case(1, 1, 1, draw="normal"),
    Case(7, 5, 11, draw="normal", given={"T": 3}),
    Case(17, 19, 18, draw="normal"),
    *tiled_cases(4, 1),
)

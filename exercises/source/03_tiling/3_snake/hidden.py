"""03.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case, tiled_cases

HIDDEN = (
    Case(3, 13, 6),
    Case(1, 1, 1, draw="normal"),
    Case(14, 9, 20, draw="normal", given={"T": 6}),
    Case(8, 12, 16, draw="normal"),
    *tiled_cases(4, 1),
)

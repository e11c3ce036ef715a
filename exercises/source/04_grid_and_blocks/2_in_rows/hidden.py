"""04.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(20, 35, 9, order="reverse"),
    Case(5, 40, 3),
    Case(53, 4, 2),
    Case(1, 17, 91, draw="normal"),
)

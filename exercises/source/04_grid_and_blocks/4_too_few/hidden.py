"""04.4: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(16, 48, 2),
    Case(1, 1, 1, given={"GRID": (1, 1)}),
    Case(41, 7, 3, draw="normal", order="reverse", given={"GRID": (1, 4), "BLOCK": (3, 2)}),
    Case(5, 143, 1, given={"GRID": (3, 1)}),
    Case(3, 2, 99, draw="normal", order="shuffle"),
)

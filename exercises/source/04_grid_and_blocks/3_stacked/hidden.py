"""04.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(4, 8, 5, parts=6, draw="normal"),
    Case(1, 1, 1, parts=1),
    Case(7, 3, 2, parts=61, given={"BLOCK": (3, 2, 5)}, order="reverse"),
    Case(3, 77, 2, parts=2, draw="wide"),
    Case(2, 3, 95, parts=4, draw="normal", order="shuffle"),
)

"""05.5: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(16, 16, 8, draw="normal", order="reverse"),
    Case(4, 4, 4),
    Case(8, 8, 52, order="shuffle"),
    Case(16, 16, 24, draw="normal", given={"TILE": 8}),
)

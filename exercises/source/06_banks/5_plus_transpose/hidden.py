"""06.5: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(45, 45, 1, draw="normal", order="reverse"),
    Case(97, 97, 1, dtype="int32", draw="full", order="shuffle"),
    Case(3, 3, 1, draw="normal", given={"ROWS": 16}),
)

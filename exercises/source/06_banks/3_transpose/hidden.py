"""06.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(40, 70, 1, draw="normal", order="reverse"),
    Case(129, 7, 1, dtype="int32", draw="full", order="shuffle"),
    Case(64, 31, 1, draw="normal", given={"ROWS": 16}, order="reverse"),
)

"""08.5: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

from .judge import ring_cases

HIDDEN = (
    Case(9, 11, 51, given={"TILE": 8, "STAGES": 5, "AHEAD": 3}, order="reverse"),
    *ring_cases(1),
)

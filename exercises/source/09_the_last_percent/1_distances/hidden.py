"""09.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

from .judge import WIDE, constants, distance_cases

HIDDEN = (
    Case(5, 67, 18, given=WIDE, order="reverse"),
    Case(20, 70, 11, given=constants(1, 2, 1, 32, 4, 1)),
    *distance_cases(1)[::2],
)

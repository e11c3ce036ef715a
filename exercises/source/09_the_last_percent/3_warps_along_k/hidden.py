"""09.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

from .judge import given, warp_cases

HIDDEN = (
    Case(9, 7, 77, given=given(7), order="reverse"),
    Case(5, 9, 3, given=given(4, 8)),
    *warp_cases(1)[::2],
)

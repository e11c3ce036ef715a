"""08.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case, tiled_cases

HIDDEN = (
    Case(8, 12, 20, order="reverse"),
    Case(3, 9, 4),
    *tiled_cases(8, 1),
)

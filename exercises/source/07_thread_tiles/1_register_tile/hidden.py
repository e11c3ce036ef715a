"""07.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    Case,
    tiled_cases,
)

HIDDEN = (
    Case(16, 24, 16, order="reverse"),
    Case(9, 11, 5),
    *tiled_cases(8, 1),
)

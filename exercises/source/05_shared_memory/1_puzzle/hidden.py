"""05.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    Case,
)

HIDDEN = (
    Case(9, 9, 9),
    Case(6, 12, 51),
    Case(36, 3, 9, draw="normal"),
    Case(24, 18, 15, order="reverse"),
)

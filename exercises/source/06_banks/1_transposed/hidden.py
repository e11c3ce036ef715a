"""06.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    Case,
    tiled_cases,
)

HIDDEN = (
    Case(20, 35, 9, by_columns="a", order="reverse"),
    Case(5, 6, 34, by_columns="a"),
    *tiled_cases(16, 1, deep=1, far_k=300, by_columns="a"),
    Case(2, 5, 110, by_columns="a"),
)

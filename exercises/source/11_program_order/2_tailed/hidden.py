"""11.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case, tiled_cases

HIDDEN = (
    Case(20, 35, 40, "float16"),
    Case(20, 35, 48, "float16"),
    Case(33, 17, 7, "float16", draw="normal"),
    *tiled_cases(16, 1, deep=1, dtype="float16"),
)

"""10.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case, tiled_cases

HIDDEN = (
    Case(20, 35, 40, "float16"),
    Case(16, 40, 700, "float16", draw="positive", by_columns="ab"),
    *tiled_cases(16, 1, deep=1, dtype="float16"),
)

"""10.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case, tiled_cases

HIDDEN = (
    Case(16, 16, 16, "float16", draw="normal"),
    Case(17, 35, 48, "float16", draw="normal", by_columns="a"),
    Case(1, 1, 1, "float16"),
    *tiled_cases(16, 1, deep=1, dtype="float16")[::3],
    Case(33, 5, 97, "float16", draw="normal", apart=True),
)

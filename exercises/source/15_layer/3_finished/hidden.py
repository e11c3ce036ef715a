"""15.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.programs import blocks
from tiled_matmul.grader.spec import Case, tiled_cases

HIDDEN = (
    Case(16, 64, 48, "float16", draw="wide"),
    Case(35, 17, 48, "float16", draw="normal", by_columns="a"),
    Case(18, 20, 33, "float16", by_columns="residual"),
    Case(1, 1, 1, "float16"),
    Case(50, 30, 40, "float16", draw="normal", given=blocks(32, 16, 32)),
    *tiled_cases(16, 1, deep=1, dtype="float16")[::3],
    Case(5, 33, 97, "float16", draw="normal", apart=True),
)

"""10.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.programs import blocks
from tiled_matmul.grader.spec import Case, tiled_cases

HIDDEN = (
    Case(16, 16, 16, "float16"),
    Case(35, 17, 48, "float16", draw="normal", by_columns="a"),
    Case(1, 1, 1, "float16"),
    Case(100, 60, 150, "float16", given=blocks(64, 32, 64)),
    *tiled_cases(16, 1, deep=1, dtype="float16"),
    Case(5, 33, 97, "float16", draw="normal", apart=True),
)

"""12.5: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(27, 1, 75, "float16", given={"BLOCK_M": 32, "BLOCK_K": 8}),
    Case(19, 1, 61, "float16", draw="normal", apart=True, by_columns="c"),
    Case(1, 1, 1, "float16"),
    Case(16, 1, 64, "float16", draw="wide", by_columns="ax"),
    Case(40, 1, 233, "float16", draw="normal", given={"BLOCK_M": 16, "BLOCK_K": 64}),
)

"""10.5: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(4, 64, 1, draw="normal"),
    Case(1, 1, 1),
    Case(13, 97, 1, draw="thousands"),
    Case(3, 333, 1, draw="positive", apart=True),
    Case(17, 45, 1, draw="wide", by_columns="c", given={"BLOCK_M": 8, "BLOCK_N": 8}),
)

"""13.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(51, 51, 90, "float16"),
    Case(64, 64, 64, "float16", draw="normal"),
    Case(33, 33, 50, "float16", given={"BLOCK": 16, "BLOCK_K": 32}),
    Case(1, 1, 1, "float16"),
)

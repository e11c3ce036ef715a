"""12.4: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.programs import blocks
from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(9, 18, 33, "float16", parts=4),
    Case(3, 50, 70, "float16", draw="normal", parts=11, apart=True),
    Case(16, 16, 16, "float16", parts=3),
    Case(2, 70, 95, "float16", parts=20, by_columns="abc", given=blocks(16, 32, 32)),
)

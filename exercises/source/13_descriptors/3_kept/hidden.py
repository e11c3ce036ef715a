"""13.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.programs import blocks
from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(150, 33, 15, "float16", given={"PROGRAMS": 4}),
    Case(97, 18, 31, "float16", draw="normal", given=blocks(16, 16, 32) | {"PROGRAMS": 5}),
    Case(64, 16, 16, "float16", given={"PROGRAMS": 4}),
    Case(5, 40, 7, "float16", by_columns="ab", given={"PROGRAMS": 1}),
)

"""14.4: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.programs import blocks
from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(50, 33, 90, parts=2, given={"PROGRAMS": 5}),
    Case(
        33, 40, 70, draw="normal", parts=2, apart=True, given=blocks(16, 16, 32) | {"PROGRAMS": 7}
    ),
    Case(48, 48, 48, parts=2, given={"PROGRAMS": 9}),
    Case(20, 18, 64, parts=2, by_columns="b", given={"PROGRAMS": 1}),
)

"""11.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(120, 70, 17, "float16", given={"GROUP_M": 3}),
    Case(90, 64, 20, "float16", draw="normal", given={"GROUP_M": 4}, by_columns="a"),
    Case(1, 1, 1, "float16"),
    Case(16, 100, 16, "float16"),
    Case(100, 16, 31, "float16", given={"GROUP_M": 5}),
)

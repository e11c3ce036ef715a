"""11.4: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

from .judge import FARTHEST, _around

HIDDEN = (
    Case(64, 1, 48, "float16"),
    Case(33, 1, 17, "float16", draw="normal", by_columns="a"),
    Case(1, 1, 1, "float16"),
    _around(FARTHEST - 3, draw="normal"),
    _around(40_000, 6),
    Case(90, 1, 33, "float16", given={"FIRST": 2}, parts=9),
)

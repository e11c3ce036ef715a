"""05.4: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    Case,
)

HIDDEN = (
    Case(8, 8, 8, "int32"),
    Case(1, 1, 1, "int32", draw="thousands"),
)

"""14.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(23, 50, 300, parts=6),
    Case(16, 32, 300, "float16", draw="normal", parts=2),
    Case(33, 65, 300, draw="normal", parts=5, apart=True),
    Case(1, 1, 300, parts=1),
)

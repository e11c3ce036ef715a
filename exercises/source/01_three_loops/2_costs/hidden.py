"""01.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call((4096, 1, 4096, 4)),
    Call((8192, 8192, 8192, 2)),
)

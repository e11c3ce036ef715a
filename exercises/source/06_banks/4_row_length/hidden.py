"""06.4: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call((48, ((4, 8),), 4)),
    Call((9, ((4, 8),), 4)),
    Call((24, ((32, 1), (4, 8)), 4)),
    Call((7, ((8, 4), (32, 1)), 16)),
)

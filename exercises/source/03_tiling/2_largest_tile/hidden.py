"""03.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call((2 << 20, 2)),
    Call((3 * 1_000_003**2, 1)),
    Call((3 * 8 * 50 * 50 - 1, 8)),
    Call((12, 4)),
)

"""15.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call(((0, 0, 0, 1), 0, 64)),
    Call(((7, 7, 7, 30, 31, 31), 4, 8)),
    Call(((7, 7, 7, 30, 31, 31), 3, 8)),
    Call(((16, 16, 48, 64), 3, 16)),
    Call(((300, 312, 312, 1000), 9, 128)),
    Call(((1, 2, 3, 4, 5), 4, 3)),
    Call(((100,), 6, 16)),
)

"""12.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call((128, 256, 64, 8, 4)),
    Call((256, 128, 64, 8, 5)),
    Call((256, 256, 32, 8, 3)),
    Call((256, 256, 128, 8, 2)),
    Call((256, 128, 32, 4, 2)),
    Call((64, 64, 128, 16, 6)),
)

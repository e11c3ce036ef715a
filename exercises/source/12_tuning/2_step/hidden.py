"""12.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call((192, 256, 64)),
    Call((256, 256, 32)),
    Call((64, 256, 64)),
    Call((128, 128, 32)),
    Call((64, 16, 16)),
    Call((320, 240, 48)),
)

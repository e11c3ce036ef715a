"""14.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call((100, 300, 64, 64, 4)),
    Call((1, 1, 128, 256, 132)),
    Call((1024, 1024, 64, 128, 128)),
    Call((2048, 2048, 128, 256, 108)),
    Call((129, 257, 128, 256, 4)),
    Call((8192, 8192, 128, 256, 132)),
)

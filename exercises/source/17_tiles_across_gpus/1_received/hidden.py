"""17.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call(("grid", 256, 1024, 64, 64)),
    Call(("gathered", 640, 64, 320, 5)),
    Call(("inner", 96, 48, 12, 3)),
    Call(("scattered", 96, 48, 12, 3)),
    Call(("rows", 64, 64, 64, 1)),
    Call(("inner", 64, 64, 64, 1)),
    Call(("grid", 64, 32, 16, 1)),
)

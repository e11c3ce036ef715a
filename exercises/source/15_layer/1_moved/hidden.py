"""15.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call((1, 1000, 7, ("bias", "scale"), 2)),
    Call((16384, 4096, 64, ("bias", "gelu", "residual"), 2)),
    Call((500, 3, 90, ("scale", "scale", "residual"), 8)),
    Call((12, 34, 56, ("bias", "bias", "relu", "relu"), 1)),
    Call((640, 320, 160, ("residual", "residual", "scale", "bias", "gelu"), 4)),
    Call((7, 5, 3, (), 2)),
)

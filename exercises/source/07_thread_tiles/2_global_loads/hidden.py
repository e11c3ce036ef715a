"""07.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    Call,
)

HIDDEN = (
    Call((1, 1, 1, 8, 4)),
    Call((65, 64, 3, 64, 64)),
)

"""07.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import (
    Call,
)

HIDDEN = (
    Call((16, 16, 8, 16)),
    Call((8, 8, 2, 2)),
    Call((128, 64, 4, 4)),  # 67 to the last digit
    Call((128, 8, 8, 8)),
)

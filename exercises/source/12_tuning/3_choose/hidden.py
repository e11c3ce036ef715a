"""12.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call((2000, 3000)),
    Call((100, 5000)),
    Call((5000, 100)),
    Call((4160, 4160)),
)

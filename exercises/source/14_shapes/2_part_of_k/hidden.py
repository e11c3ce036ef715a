"""14.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.programs import (
    blocks,
)
from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(16, 16, 64, parts=4),
    Case(18, 40, 100, parts=2, given=blocks(32, 16, 64)),
    Case(17, 19, 90, parts=1, given=blocks(16, 32, 16)),
)

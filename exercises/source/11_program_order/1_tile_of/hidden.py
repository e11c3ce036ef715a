"""11.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

from .judge import _every

HIDDEN = (
    *_every(4, 7, 3),
    *_every(9, 9, 3),
    *_every(3, 5, 8),
    *_every(6, 1, 4),
    *_every(1, 6, 4),
    *_every(5, 2, 1),
    Call((1_000_003, 2047, 1023, 16)),
    Call((2047 * 1023 - 1, 2047, 1023, 16)),
)

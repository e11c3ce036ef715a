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
    # Few enough for an answer that lists and sorts all tiles.
    Call((130_003, 511, 255, 16)),
    Call((511 * 255 - 1, 511, 255, 16)),
)

"""13.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call(("full", 1, [0, 1, 0, 1, 1], [False, True, False, True, False])),
    Call(("empty", 1, [1, 0, 0], [True, False, True])),
    Call(("empty", 4, [1, 1, 1, 1, 0, 0, 0, 0, 1, 0], [True] * 8 + [False, False])),
    Call(("full", 5, [0, 0, 0], [False] * 3)),
    Call(("full", 2, [], [])),
)

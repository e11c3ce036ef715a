"""16.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call((1, [1, 1], [False])),
    Call((7, [3, 5], [True])),
    Call((16, [8, 9, 10, 11, 12], [True, False, True, False])),
    Call((16, [8, 9, 10, 11, 12], [False, True, True, False])),
    Call((5, [2, 3, 4], [True, True])),
)

"""16.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call(([[2]], [[3]], [[5]])),
    Call(([[1, 2, 3]], [[1], [0], [2]], [[4]])),
    Call(([[1], [2]], [[3, 4, 5]], [[1, 0, 2], [0, 1, 3]])),
    Call(([[0, 1], [1, 0]], [[2, 0], [5, 7]], [[1, 2], [3, 4]])),
)

"""17.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = tuple(Call(case) for case in ((0, 2), (1, 2), (6, 7), (0, 8), (0, 1), (3, 5)))

"""07.5: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

from .._shared import sizes

HIDDEN = (
    Case(17, 40, 11, draw="normal", order="shuffle"),
    Case(3, 70, 22, draw="normal", given=sizes(2, 2), order="reverse"),
    Case(14, 10, 31, draw="positive", given=sizes(4, 1), order="shuffle"),
    Case(5, 2, 61, draw="normal"),
)

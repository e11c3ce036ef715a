"""05.7: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case

HIDDEN = (
    Case(2, 24, 1, draw="normal", order="reverse"),
    Case(3, 7, 1, draw="positive", given={"THREADS": 32}),
    Case(1, 1, 1, draw="normal", given={"THREADS": 2}),
    Case(2, 99, 1, draw="normal", given={"THREADS": 64}, order="shuffle"),
    Case(1, 600, 1, draw="normal", given={"THREADS": 512}, order="reverse"),
)

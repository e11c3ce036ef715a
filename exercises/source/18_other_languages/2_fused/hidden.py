"""18.2: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

WAYS = ("fused", "unfused", "narrow")
LISTS = (
    ([], []),
    ([0, 0], [5, 0]),
    ([2**24 - 1] * 5, [2**24 - 1] * 5),
    ([-(2**24) + 1] * 3, [2**24 - 3] * 3),
    ([12345, -54321, 33333, 2049], [54321, 12347, -44445, 2047]),
    ([-5001] * 9, [7003] * 9),
)

HIDDEN = tuple(Call((a, b, way)) for a, b in LISTS for way in WAYS)

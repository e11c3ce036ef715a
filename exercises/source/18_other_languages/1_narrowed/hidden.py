"""18.1: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

WAYS = ("cut", "away", "even")
PATTERNS = (
    0x0000_0000,
    0x8000_0000,
    0x0000_1000,  # half of the smallest number of TF32
    0x8000_3000,
    0x007F_F000,  # a subnormal number that becomes a normal one
    0x7F7F_FFFF,  # the largest number
    0xFF7F_F000,
    0x4049_0FDB,  # π
)

HIDDEN = tuple(Call((bits, way)) for bits in PATTERNS for way in WAYS)

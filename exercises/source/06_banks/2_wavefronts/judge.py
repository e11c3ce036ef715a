"""06.2, how many ways: what is asked for, and how an answer is judged."""

from __future__ import annotations

import math

import numpy as np

from tiled_matmul.grader.spec import (
    VALUES,
    Call,
    Exercise,
    Slip,
)

BANKS = 32


def wavefronts(stride: int, size: int) -> int:
    """Wavefronts of a load in which lane t wants element t · stride, of `size` bytes: 4 or 8."""
    if stride == 0:
        return 1
    parts = size // 4
    return parts * math.gcd(stride, BANKS // parts)


def _any(rng: np.random.Generator) -> tuple:
    return int(rng.integers(1, rng.choice((200, 10**6)))), int(rng.choice((4, 8)))


def _even(rng: np.random.Generator) -> tuple:
    return int(rng.integers(1, 12) << rng.integers(1, 20)), int(rng.choice((4, 8)))


EXERCISE = Exercise(
    name="06.2",
    title="how many ways",
    points=3,
    entry="wavefronts",
    parameters=("stride", "size"),
    kind="values",
    rules=VALUES,
    answer=wavefronts,
    cases=(
        *(Call((stride, 4)) for stride in (1, 2, 3, 16, 32, 33, 0)),
        *(Call((stride, 8)) for stride in (1, 3, 8, 32, 0)),
        *(Call((stride, size)) for stride in (400, 4096, 100_001) for size in (4, 8)),
        *(Call(draw=draw) for draw in (_any, _even) * 4),
    ),
    slips=(
        Slip(
            lambda stride, size: size // 4 * math.gcd(stride, BANKS * 4 // size),
            "broadcast",
            "With stride 0 all lanes want the same word, and it is delivered once.",
        ),
        Slip(
            lambda stride, size: 2 if stride == 0 and size == 8 else -1,
            "broadcast",
            "All lanes want one element: then the two halves of a warp go together.",
        ),
        Slip(
            lambda stride, size: math.gcd(stride, BANKS) if stride else 1,
            "size",
            "That is what elements of 4 bytes take. Those of 8 fill two banks each, and half a "
            "warp goes at a time.",
        ),
        Slip(
            lambda stride, size: math.gcd(stride, 16) if stride and size == 8 else -1,
            "size",
            "That is what one half of the warp takes. The other half takes as many again.",
        ),
        Slip(
            lambda stride, size: size // 4 * math.gcd(stride, BANKS) if stride else 1,
            "size",
            "An element of 8 bytes fills two banks, so there are 16 such pairs of banks for the 16 "
            "lanes of a half: the stride has something in common with 16, not with 32.",
        ),
        Slip(
            lambda stride, size: wavefronts(stride, size) - 1,
            "minus one",
            "That is one too few: it counts what comes on top of the first wavefront.",
        ),
        Slip(
            lambda stride, size: min(max(stride, 1), BANKS),
            "factor",
            "A stride is no conflict by itself: only what it has in common with the number of "
            "banks makes lanes meet. Try 3 by hand.",
        ),
        Slip(
            lambda stride, size: BANKS if math.gcd(stride, BANKS) == 1 else -1,
            "factor",
            "That is the number of banks that are asked. How many words does each have to deliver?",
        ),
    ),
    hints={
        **{"broadcast": 2, "size": 3, "minus one": 1, "factor": 2, "nothing": 1, "error": 2},
        "other": 2,
    },
)

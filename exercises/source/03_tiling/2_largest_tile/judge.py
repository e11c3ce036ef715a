"""03.2, the tile for a cache: what is asked for, and how an answer is judged."""

from __future__ import annotations

from math import isqrt

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Limits, Slip


def _largest(cache_bytes: int, bytes_each: int) -> int:
    return isqrt(cache_bytes // (3 * bytes_each))


def _cache(rng: np.random.Generator) -> tuple[int, int]:
    """A cache of no round size, now and then one that three tiles fill to the last byte."""
    each = int(rng.choice([1, 2, 4, 8, 16]))
    edge = int(rng.integers(9, rng.choice((400, 20_000))))
    return 3 * each * edge * edge + int(rng.choice([-1, 0, 1, each])), each


def _of(tiles: int):
    return lambda cache, each: isqrt(cache // (tiles * each))


def _less(cache: int, each: int) -> int:
    """The largest T so that there is room left."""
    edge = isqrt(cache // (3 * each))
    return edge - (3 * each * edge * edge == cache)


def _power(cache: int, each: int) -> int:
    edge = _largest(cache, each)
    return 1 << (edge.bit_length() - 1) if edge else 0


EXERCISE = Exercise(
    name="03.2",
    title="the tile for a cache",
    points=2,
    entry="largest_tile",
    parameters=("cache_bytes", "bytes_each"),
    kind="values",
    rules=VALUES,
    limits=Limits(seconds=3),
    cases=(
        Call((48 * 1024, 4)),
        Call((32 * 1024, 4)),
        Call((48 * 1024, 8)),
        Call((50 << 20, 4)),
        Call((3 * 4 * 15_001**2 - 1, 4)),  # a byte is missing, which float32 cannot tell
        *(Call(draw=_cache) for _ in range(6)),
        Call((11, 4)),
    ),
    answer=_largest,
    slips=(
        Slip(
            lambda cache, each: max(1, _largest(cache, each)),
            "too small",
            "Not even tiles of one element fit there, so the largest T is 0.",
        ),
        Slip(
            lambda cache, each: cache // (3 * each),
            "no root",
            "So many elements has a tile; its edge is the root of that.",
        ),
        Slip(
            lambda cache, each: (cache / (3 * each)) ** 0.5,
            "no whole number",
            "T is a whole number: round down, since a larger tile does not fit.",
        ),
        Slip(
            _less,
            "filled",
            "Three tiles may fill the cache to the last byte: at most so many bytes, and not less.",
        ),
        Slip(
            lambda cache, each: round((cache / (3 * each)) ** 0.5),
            "rounded up",
            "Three tiles of that edge are more bytes than the cache has: round down.",
        ),
        Slip(
            lambda cache, each: _largest(cache, each) + 1,
            "rounded up",
            "Three tiles of that edge are more bytes than the cache has. Which T is the last one "
            "that fits?",
        ),
        Slip(
            _of(1),
            "one tile",
            "One tile of that edge fits. There are three at a time: of A, of B and of C.",
        ),
        Slip(
            _of(2),
            "two tiles",
            "Two tiles of that edge fit. There are three at a time: of A, of B and of C.",
        ),
        Slip(
            lambda cache, each: isqrt(cache // 3),
            "elements",
            "So many elements would fit if each had one byte: each has `bytes_each`.",
        ),
        Slip(
            lambda cache, each: isqrt(cache // 12),
            "four bytes",
            "That is the tile for elements of 4 bytes: here each has `bytes_each`.",
        ),
        Slip(
            lambda cache, each: cache // (9 * each),
            "no square",
            "A tile has T · T elements, not 3 · T: T is a root.",
        ),
        Slip(
            _power,
            "power of two",
            "That is the largest power of two that fits; T can be any whole number.",
        ),
    ),
    hints={
        **{"no root": 2, "no whole number": 3, "filled": 2, "rounded up": 3, "one tile": 1},
        **{"two tiles": 1, "elements": 1, "four bytes": 1, "no square": 1, "power of two": 3},
        **{"too small": 3, "nothing": 2, "error": 3, "timeout": 3, "value": 1, "other": 1},
    },
)

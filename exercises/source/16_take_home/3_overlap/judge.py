"""16.3, what a launch looks at each time: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip


def _last(shape: list, strides: list) -> int:
    return sum(stride * (size - 1) for size, stride in zip(shape, strides, strict=True))


def _shared(length: Callable, between: Callable | None = None) -> Callable:
    """Return what two spans share, if one is length(shape, strides, each) bytes long."""

    def answer(a: list, b: list) -> int:
        (at_a, end_a), (at_b, end_b) = ((x[0], x[0] + length(*x[1:])) for x in (a, b))
        shared = min(end_a, end_b) - max(at_a, at_b)
        return between(at_a, end_a, at_b, end_b) if between else max(0, shared)

    return answer


def _span(shape: list, strides: list, each: int) -> int:
    return (_last(shape, strides) + 1) * each


shared_bytes = _shared(_span)


def _matrix(random: np.random.Generator, address: int) -> list:
    rows, columns, gap = (int(x) for x in random.integers((1, 2, 0), (20, 20, 6)))
    each = int(random.choice((2, 4)))
    if random.random() < 0.5:
        return [address, [rows, columns], [columns + gap, 1], each]
    return [address, [columns, rows], [1, columns + gap], each]


def _pair(random: np.random.Generator) -> tuple:
    address = 16 * int(random.integers(100, 200))
    return _matrix(random, address), _matrix(random, address + 4 * int(random.integers(-60, 61)))


EXERCISE = Exercise(
    name="16.3",
    title="what a launch looks at each time",
    points=3,
    entry="shared_bytes",
    parameters=("a", "b"),
    kind="values",
    rules=VALUES,
    answer=shared_bytes,
    cases=(
        Call(([4096, [8, 16], [16, 1], 2], [4096, [8, 16], [16, 1], 2])),
        Call(([4096, [8, 16], [16, 1], 2], [4112, [8, 8], [16, 1], 2])),
        Call(([4096, [8, 16], [16, 1], 2], [4352, [8, 16], [16, 1], 2])),
        Call(([4096, [8, 16], [16, 1], 2], [8192, [8, 16], [16, 1], 4])),
        *(Call(draw=_pair) for _ in range(10)),
    ),
    slips=(
        Slip(
            _shared(lambda shape, strides, each: prod(shape) * each),
            "no gaps",
            "The span is taken to be rows · columns elements long. Where rows have gaps between "
            "them, it is longer: ask the strides.",
        ),
        Slip(
            _shared(lambda shape, strides, each: _last(shape, strides) * each),
            "last element",
            "The span ends where the last element begins: its bytes belong to the span.",
        ),
        Slip(
            _shared(lambda shape, strides, each: _last(shape, strides) + each),
            "strides",
            "The strides are taken to be bytes. They count elements.",
        ),
        Slip(
            _shared(
                lambda shape, strides, each: (
                    sum(x * y for x, y in zip(shape, strides, strict=True)) * each
                )
            ),
            "too far",
            "The last element has the indices size - 1, not size.",
        ),
        Slip(
            _shared(_span, lambda a, a_end, b, b_end: min(a_end, b_end) - max(a, b)),
            "negative",
            "Where spans do not meet, they share 0 bytes, and not fewer.",
        ),
        Slip(
            _shared(_span, lambda a, a_end, b, b_end: max(0, a_end - b)),
            "one order",
            "That is right if a begins first and ends first. b may begin first, or end inside a.",
        ),
        Slip(
            lambda a, b: shared_bytes(a, b) if a[0] == b[0] else 0,
            "same address",
            "Matrices can overlap with different first addresses, as a matrix and its right half.",
        ),
        Slip(
            lambda a, b: int(shared_bytes(a, b) > 0),
            "yes or no",
            "That says whether spans overlap: return by how many bytes.",
        ),
    ),
    hints={
        **{"no gaps": 1, "last element": 2, "strides": 2, "too far": 1, "negative": 3},
        **{"one order": 3, "same address": 3, "yes or no": 3, "nothing": 1, "value": 2},
        **{"forbidden": 2, "error": 1, "other": 1},
    },
)

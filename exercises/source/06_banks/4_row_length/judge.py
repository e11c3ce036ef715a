"""06.4, a row length for every access: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

WARP_BYTES = 128  # that all banks deliver at once
Patches = tuple[tuple[int, int], ...]


def free(length: int, wide: int, size: int, lanes: int | None = None) -> bool:
    """Return whether a patch that is `wide` elements wide has no conflict at this row length."""
    banks = WARP_BYTES // size
    lanes = lanes or banks
    places = [(t // wide * length + t % wide) % banks for t in range(lanes)]
    return len({*places}) == lanes


def row_length(columns: int, patches: Patches, size: int) -> int:
    """Return the smallest row length that has no conflict in any of the patches, or 0."""
    return _first(columns, patches, size)


def _first(
    columns: int,
    patches: Patches,
    size: int,
    begin: int = 0,
    when: Callable[[Patches], Patches] = lambda patches: patches,
    as_size: int | None = None,
) -> int:
    of_size = as_size or size
    for length in range(columns + begin, columns + begin + 32):
        if all(free(length, wide, of_size) for _, wide in when(patches)):
            return length
    return 0


def _if_other(made: Callable) -> Callable:
    """Return what a mistake gives where that is wrong, and a length: 0 has its own message."""

    def other(columns: int, patches: Patches, size: int) -> int | str:
        result = made(columns, patches, size)
        return "right" if result in (0, row_length(columns, patches, size)) else result

    return other


def _padding(columns: int, patches: Patches, size: int) -> int | str:
    right = row_length(columns, patches, size)
    return right - columns if right > columns else "right"


def _times(factor: int) -> Callable:
    """Return the row length in smaller units, of `factor` bytes."""

    def made(columns: int, patches: Patches, size: int) -> int:
        return row_length(columns, patches, size) * size // factor

    return _if_other(made)


def _smallest(columns: int, patches: Patches, size: int) -> int:
    """The smallest length of all, which may be shorter than a row."""
    return _first(1, patches, size)


def _some(random: np.random.Generator) -> tuple:
    size = int(random.choice((4, 8, 16)))
    wide = [int(2**e) for e in random.integers(0, 6, int(random.integers(1, 4)))]
    columns = int(random.integers(max(wide), random.choice((40, 300))))
    return columns, tuple((32 // w, w) for w in wide), size


ROW, COLUMN = (1, 32), (32, 1)
SLIPS = (
    Slip(
        _if_other(lambda columns, patches, size: _first(columns, patches, size, begin=1)),
        "unpadded",
        "Without any padding there is no conflict here, and no shorter row than that. Begin the "
        "search at `columns`.",
    ),
    Slip(
        _if_other(lambda columns, patches, size: columns + 1),
        "one more",
        "That is one element more than the row has. It is enough for a column of 32 rows, and not "
        "in general: try the lengths one after the other.",
    ),
    Slip(
        _if_other(lambda columns, patches, size: columns),
        "none",
        "That is the row without padding. It suits an access along a row, and another access has "
        "conflicts with it.",
    ),
    Slip(
        _if_other(_smallest),
        "short",
        "Such a row would be shorter than its elements: a row has at least `columns`.",
    ),
    Slip(
        _if_other(lambda columns, patches, size: _first(columns, patches, size, as_size=4)),
        "size",
        "That holds for elements of 4 bytes. Wider ones fill two or four banks each, and half or a "
        "quarter of a warp is served at a time.",
    ),
    Slip(
        _if_other(
            lambda columns, patches, size: _first(columns, patches, size, when=lambda p: p[:1])
        ),
        "one patch",
        "The first patch has no conflict with that length, and another one has: the length has to "
        "suit them all.",
    ),
    Slip(
        _if_other(
            lambda columns, patches, size: _first(columns, patches, size, when=lambda p: p[-1:])
        ),
        "one patch",
        "The last patch has no conflict with that length, and another one has: the length has to "
        "suit them all.",
    ),
    Slip(
        _padding,
        "padding",
        "That is the padding alone. The row length is asked for, with the padding.",
    ),
    Slip(
        _times(1),
        "unit",
        "That is the length in bytes. It is asked for in elements.",
    ),
    Slip(
        _times(4),
        "unit",
        "That is the length in words of 4 bytes. It is asked for in elements.",
    ),
    Slip(
        _if_other(
            lambda columns, patches, size: _first(
                columns, patches, size, when=lambda p: [(w, r) for r, w in p]
            )
        ),
        "axes",
        "That is for patches with rows and columns exchanged: neighbouring lanes access "
        "neighbouring columns, `wide` of them, before the next row begins.",
    ),
    Slip(
        lambda columns, patches, size: 0,
        "nowhere",
        "There is such a length. How many lanes are served at a time for this size, and how many "
        "lengths are there until the banks repeat?",
    ),
)

EXERCISE = Exercise(
    name="06.4",
    title="a row length for every access",
    points=3,
    entry="row_length",
    parameters=("columns", "patches", "size"),
    kind="values",
    rules=VALUES,
    answer=row_length,
    cases=(
        Call((31, ((8, 4), (16, 2)), 8)),  # another number by most of the slips
        Call((66, ((8, 4), ROW), 4)),
        Call((20, ((2, 16),), 8)),
        Call((17, ((2, 16),), 4)),  # more than twice the columns
        Call((32, (ROW, COLUMN), 4)),
        Call((40, (COLUMN,), 4)),
        Call((33, (COLUMN, ROW), 4)),
        Call((32, (ROW, COLUMN), 8)),
        Call((8, ((4, 8), COLUMN), 16)),
        Call((16, ((2, 16), (16, 2)), 4)),
        Call((16, ((2, 16),), 4)),
        Call((17, ((16, 2),), 4)),
        Call((64, ((4, 8), (2, 16)), 8)),
        Call((100, (ROW,), 8)),
        Call((9, ((32, 1), (4, 8)), 16)),
        Call((12, ((8, 4), (16, 2)), 16)),
        *(Call(draw=_some) for _ in range(12)),
    ),
    slips=SLIPS,
    hints={
        **{"one more": 1, "none": 1, "unpadded": 1, "short": 1, "size": 2, "one patch": 1},
        **{"padding": 1, "unit": 2, "axes": 1, "nowhere": 3, "nothing": 1, "error": 2},
        "other": 2,
    },
)

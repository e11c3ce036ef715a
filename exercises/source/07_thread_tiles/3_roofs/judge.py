"""07.3, read a roofline: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import (
    VALUES,
    Call,
    Exercise,
    Slip,
)

FLOAT = 4  # bytes
PEAK, GLOBAL, SHARED = 67.0, 4.8, 33.5  # an H200's 10¹² FLOPs, and bytes, a second


def _intensity(rows: int, columns: int) -> float:
    """FLOPs for each byte, where a step of k loads rows + columns floats for all products."""
    return 2 * rows * columns / (FLOAT * (rows + columns))


def roofs(tile_m: int, tile_n: int, own_m: int, own_n: int) -> tuple[float, float, str]:
    """Return (roof of global memory, of shared memory, what limits), in 10¹² FLOPs a second."""
    both = _intensity(tile_m, tile_n) * GLOBAL, _intensity(own_m, own_n) * SHARED
    return *(min(PEAK, roof) for roof in both), _lowest(*both)


def _lowest(of_global: float, of_shared: float) -> str:
    if min(of_global, of_shared) >= PEAK:
        return "arithmetic"
    return "global memory" if of_global < of_shared else "shared memory"


def _any_tiles(random: np.random.Generator) -> tuple[int, ...]:
    own_m, own_n = (int(x) for x in random.integers(1, 9, size=2))
    return (*(int(x) for x in random.choice((8, 16, 32, 48, 64, 128), 2)), own_m, own_n)


def _low(roof: float) -> float | None:
    """A mistake's roof below PEAK: where it is cut, nothing tells one mistake from another."""
    return roof if roof < PEAK else None


def _named(word: str, when: Callable[[float, float], bool]) -> Callable[..., tuple | None]:
    """Return what has both roofs right, and this word for some roofs."""

    def made(*tiles: int) -> tuple | None:
        of_global, of_shared, right = roofs(*tiles)
        return (
            (of_global, of_shared, word) if word != right and when(of_global, of_shared) else None
        )

    return made


def _above(roof: float) -> float | None:
    return roof if roof > PEAK else None


OF_GLOBAL = (
    (
        lambda m, n, r, s: _intensity(m, n) / 2 * GLOBAL,
        "flops",
        "The first value is half of it: a multiply-add is two FLOPs.",
    ),
    (
        lambda m, n, r, s: _intensity(m, n) * FLOAT * GLOBAL,
        "bytes",
        "The first value is as if a float were one byte.",
    ),
    (
        lambda m, n, r, s: _intensity(m, n) / 8 * GLOBAL,
        "bytes",
        "The first value counts bits: bandwidths are bytes a second.",
    ),
    (
        lambda m, n, r, s: _intensity(m, n) * SHARED,
        "bandwidth",
        "The first value is the block's tile with the bandwidth of shared memory.",
    ),
    (
        lambda m, n, r, s: _intensity(r, s) * GLOBAL,
        "tiles",
        "The first value is a thread's tile: what a block loads from global memory, it loads for "
        "its own tile of tile_m × tile_n.",
    ),
    (
        lambda m, n, r, s: 2 / FLOAT * GLOBAL,
        "tiles",
        "The first value divides by the tile's area: a step of k loads tile_m floats of A and "
        "tile_n of B, and the area is what they are multiplied to.",
    ),
)

OF_SHARED = (
    (
        lambda m, n, r, s: _intensity(r, s) / 2 * SHARED,
        "flops",
        "The second value is half of it: a multiply-add is two FLOPs.",
    ),
    (
        lambda m, n, r, s: _intensity(r, s) * FLOAT * SHARED,
        "bytes",
        "The second value is as if a float were one byte.",
    ),
    (
        lambda m, n, r, s: _intensity(r, s) * GLOBAL,
        "bandwidth",
        "The second value is a thread's tile with the bandwidth of global memory.",
    ),
    (
        lambda m, n, r, s: _intensity(m, n) * SHARED,
        "tiles",
        "The second value is the block's tile: a thread loads from shared memory for its own own_m "
        "× own_n.",
    ),
    (
        lambda m, n, r, s: _intensity(1, 1) * SHARED,
        "registers",
        "The second value is a kernel with one element for each thread: a float that lies in a "
        "register is multiplied with each of the other side.",
    ),
    (
        lambda m, n, r, s: 2 / FLOAT * SHARED,
        "tiles",
        "The second value divides by the area: a step of k loads own_m floats of A and own_n of B, "
        "and the area is what they are multiplied to.",
    ),
)

WORDS = (
    (
        "arithmetic",
        lambda x, y: max(x, y) == PEAK,
        "one roof reaches PEAK, the other one is lower.",
    ),
    (
        "global memory",
        lambda x, y: min(x, y) == PEAK,
        'no memory is in the way here, "arithmetic" is.',
    ),
    (
        "shared memory",
        lambda x, y: min(x, y) == PEAK,
        'no memory is in the way here, "arithmetic" is.',
    ),
    ("global memory", lambda x, y: y < x, "a kernel is under the lower roof."),
    ("shared memory", lambda x, y: x < y, "a kernel is under the lower roof."),
)

EXERCISE = Exercise(
    name="07.3",
    title="read a roofline",
    points=2,
    entry="roofs",
    parameters=("tile_m", "tile_n", "own_m", "own_n"),
    kind="values",
    rules=VALUES,
    given={"FLOAT": FLOAT, "PEAK": PEAK, "GLOBAL": GLOBAL, "SHARED": SHARED},
    answer=roofs,
    cases=(
        Call((4, 12, 1, 2)),  # another number by each of the slips
        Call((16, 16, 1, 1)),
        Call((64, 64, 8, 1)),
        Call((128, 128, 8, 8)),
        Call((16, 32, 4, 8)),
        Call((128, 128, 8, 16)),  # both above PEAK
        *(Call(draw=_any_tiles) for _ in range(8)),
    ),
    slips=(
        *(
            Slip(lambda *t, f=of: _low(f(*t)), diagnosis, message, part=0)
            for of, diagnosis, message in OF_GLOBAL
        ),
        *(
            Slip(lambda *t, f=of: _low(f(*t)), diagnosis, message, part=1)
            for of, diagnosis, message in OF_SHARED
        ),
        Slip(
            lambda *t: PEAK if roofs(*t)[0] < PEAK else None,
            "value",
            "The first value is the arithmetic's roof: how much do the loads from global memory "
            "allow?",
            part=0,
        ),
        Slip(
            lambda *t: PEAK if roofs(*t)[1] < PEAK else None,
            "value",
            "The second value is the arithmetic's roof: how much do the loads from shared memory "
            "allow?",
            part=1,
        ),
        Slip(
            lambda *t: _above(_intensity(*t[:2]) * GLOBAL),
            "peak",
            "The first value is above PEAK: no memory makes the arithmetic faster than that.",
            part=0,
        ),
        Slip(
            lambda *t: _above(_intensity(*t[2:]) * SHARED),
            "peak",
            "The second value is above PEAK: no memory makes the arithmetic faster than that.",
            part=1,
        ),
        Slip(
            lambda *t: (roofs(*t)[1], roofs(*t)[0], roofs(*t)[2]),
            "order",
            "The two roofs are in the other order: global memory's comes first.",
        ),
        *(
            Slip(_named(word, when), "lowest", f"Both roofs are right and the word is not: {why}")
            for word, when, why in WORDS
        ),
    ),
    hints={
        **{"nothing": 1, "flops": 1, "bytes": 1, "tiles": 2, "registers": 2, "bandwidth": 2},
        **{"peak": 3, "lowest": 3, "order": 3, "value": 2, "error": 3, "other": 2},
    },
)

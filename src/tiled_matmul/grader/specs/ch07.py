"""07_thread_tiles: a register tile of 2×2, its loads from global memory, and its two roofs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    ONCE,
    VALUES,
    Call,
    Case,
    Count,
    Exercise,
    Slip,
    Speed,
    cover,
)
from tiled_matmul.grader.spec import loads_of_tiles as global_loads

TILE, OWN = 8, 2


def _edge(case: Case) -> int:
    return case.given.get("TILE", TILE)


def _launch(case: Case) -> tuple:
    edge = _edge(case)
    return (cover(case.n, edge), cover(case.m, edge)), (edge // OWN, edge // OWN)


def shared_loads(case: Case) -> int:
    """What tiles of 2×2 load from shared memory: four elements a step of k, for four products."""
    edge = _edge(case)
    threads = cover(case.m, edge) * cover(case.n, edge) * (edge // OWN) ** 2
    return threads * cover(case.k, edge) * edge * 2 * OWN


def _exchanged(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Return C with two elements of each tile of 2×2 exchanged, where such tiles fill C."""
    if case.m % OWN or case.n % OWN:
        return None
    c = a @ b
    c[0::2, 1::2], c[1::2, 0::2] = c[1::2, 0::2].copy(), c[0::2, 1::2].copy()
    return c


REGISTERS = Exercise(
    name="07.1",
    title="a tile of 2×2 for each thread",
    points=4,
    entry="register_tile",
    parameters=("a", "b", "c"),
    kind="cuda",
    rules=CUDA,
    tile=TILE,
    given={"TILE": TILE},
    launch=_launch,
    cases=(
        Case(8, 8, 8),
        Case(16, 24, 16, hidden=True, order="reverse"),
        Case(9, 11, 5, hidden=True),
        Case(7, 3, 17, draw="normal", order="shuffle"),
        # Two warps a block: what orders one warp does not order these.
        Case(18, 15, 20, given={"TILE": 16}, order="reverse"),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"TILE": 32}),),
    speed=Speed(
        Case(1024, 1024, 1024, draw="normal", given={"TILE": 32}),
        "cuda_coalesced",
        2.0,
        1,
        "That kernel keeps nothing in shared memory: yours, with tiles and registers, takes less "
        "than half of its time.",
    ),
    counts=(
        Count(
            "global loads",
            lambda case: global_loads(case.m, case.n, case.k, _edge(case), _edge(case)),
            "C is right, but it takes more from global memory than the tiles hold: multiply what "
            "lies in shared memory.",
            "sharing",
        ),
        Count(
            "shared loads",
            shared_loads,
            "C is right, but a thread loads an element more than once in a step of k. For four "
            "products it needs two of A and two of B: load those four first, then multiply each "
            "with each.",
        ),
        ONCE,
    ),
    slips=(
        Slip(
            _exchanged,
            "exchanged",
            "In each tile of 2×2 the upper right and the lower left element have changed places: "
            "an element's row says which of A's two it takes, its column which of B's.",
        ),
    ),
    remedies={
        "staged twice": "A thread's sums are its own, in a cuda.local.array; in a tile of shared "
        "memory each thread stores elements of its own.",
    },
    hints={
        **{"guard": 3, "staged twice": 1},
        **{"race of c": 3, "exchanged": 2, "not finite": 1, "once": 3},
        **{"stale": 1, "race": 3, "out of bounds": 3, "counts": 2, "sharing": 1, "part of k": 2},
        **{"uninitialised read": 2, "divergent barrier": 3, "transposed": 2, "error": 3},
        "other": 2,
        "slow": 2,
    },
)


def _draw(rng) -> tuple:
    m, n, k = (int(size) for size in rng.integers(1, 300, 3))
    rows, columns = (int(edge) for edge in rng.choice((4, 8, 16, 32, 48), 2, replace=False))
    return m, n, k, rows, columns


PREDICTED = Exercise(
    name="07.2",
    title="traffic, predicted",
    points=3,
    entry="global_loads",
    parameters=("m", "n", "k", "rows", "columns"),
    kind="values",
    rules=VALUES,
    answer=global_loads,
    cases=(
        Call((64, 64, 64, 64, 64)),
        Call((64, 64, 64, 16, 16)),
        Call((128, 128, 16, 128, 64)),
        Call((20, 35, 9, 64, 64)),
        Call((100, 70, 20, 64, 32)),
        Call((1, 1, 1, 8, 4), hidden=True),
        Call((65, 64, 3, 64, 64), hidden=True),
        *(Call(draw=_draw) for _ in range(6)),
    ),
    slips=(
        Slip(
            lambda m, n, k, rows, columns: 2 * m * n * k,
            "naive",
            "That is what it takes with no tiles at all.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * (m * cover(n, rows) + n * cover(m, columns)),
            "axes",
            "Rows and columns are exchanged: A is loaded once for each column of tiles, and how "
            "many of those there are, the tile's columns say.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * (m * (n // columns) + n * (m // rows)),
            "rounding",
            "The tiles at the edges are missing: where a tile does not divide C there is one more.",
        ),
        Slip(
            lambda m, n, k, rows, columns: (
                k * (rows + columns) * cover(m, rows) * cover(n, columns)
            ),
            "beyond",
            "What lies beyond the edge is not loaded: there the guard puts a zero.",
        ),
        Slip(
            lambda m, n, k, rows, columns: m * n * k / rows + m * n * k / columns,
            "rounding",
            "Tiles come whole: count them, rounded up.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * (rows + columns),
            "one block",
            "That is what one block loads.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * m * cover(n, columns),
            "half",
            "That is A's part. B's is missing.",
        ),
        Slip(
            lambda m, n, k, rows, columns: k * n * cover(m, rows),
            "half",
            "That is B's part. A's is missing.",
        ),
        Slip(
            lambda m, n, k, rows, columns: m * cover(n, columns) + n * cover(m, rows),
            "one step",
            "That is for one step of k.",
        ),
        Slip(
            lambda m, n, k, rows, columns: m * k + k * n,
            "once",
            "That is each matrix once. But each block loads for itself, and blocks side by side "
            "load the same rows of A.",
        ),
    ),
    hints={
        **{"naive": 1, "axes": 2, "rounding": 3, "beyond": 3, "one block": 1, "half": 2, "once": 1},
        **{"one step": 2, "nothing": 1, "error": 2, "other": 1},
    },
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

ROOFS = Exercise(
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
        Call((16, 16, 8, 16), hidden=True),
        Call((8, 8, 2, 2), hidden=True),
        Call((128, 64, 4, 4), hidden=True),  # 67 to the last digit
        Call((128, 8, 8, 8), hidden=True),
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

EXERCISES = (REGISTERS, PREDICTED, ROOFS)

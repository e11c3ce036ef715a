"""07.1, a tile of 2×2 for each thread: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    NO_NEEDLESS_BARRIERS,
    ONCE,
    PADDED,
    Case,
    Count,
    Exercise,
    Slip,
    Speed,
    cover,
    each_its_own,
    loads_of_whole_tiles,
    tiled_cases,
)

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


EXERCISE = Exercise(
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
        Case(7, 3, 17, draw="normal", order="shuffle"),
        # Two warps a block: what orders one warp does not order these.
        Case(18, 15, 20, given={"TILE": 16}, order="reverse"),
        *tiled_cases(TILE),
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
            lambda case: loads_of_whole_tiles(case, _edge(case), _edge(case), _edge(case)),
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
            best=shared_loads,
        ),
        ONCE,
        *each_its_own(lambda case: 4, "sharing", lambda case: 4 * (case.k + PADDED)),
        NO_NEEDLESS_BARRIERS,
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

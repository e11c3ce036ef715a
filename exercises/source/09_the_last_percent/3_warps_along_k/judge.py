"""09.3, warps that divide K: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    ONCE,
    SHUFFLED,
    Case,
    Count,
    Exercise,
    Limits,
    Slip,
    cover,
    loads_of_whole_tiles,
)

ABC = ("a", "b", "c")
GIVEN = {"WARPS": 4, "ROWS": 4, "COLUMNS": 8, "DEPTH": 8}
DEPTH = 8


def given(warps: int, rows: int = 4) -> dict[str, int]:
    return {"WARPS": warps, "ROWS": rows, "COLUMNS": 32 // rows}


def _of(case: Case, name: str) -> int:
    return case.given.get(name, GIVEN[name])


def launch(case: Case) -> tuple:
    grid = cover(case.n, _of(case, "COLUMNS")), cover(case.m, _of(case, "ROWS"))
    return grid, (32 * _of(case, "WARPS"), 1)


def _blocks(case: Case) -> int:
    (across, down), _ = launch(case)
    return across * down


def _loads_of_a_warp(case: Case) -> int:
    """Return what one warp loads at most from shared memory: its tiles, and all warps' sums."""
    tiles = cover(cover(case.k, DEPTH), _of(case, "WARPS"))
    return 32 * (2 * DEPTH * tiles + _of(case, "WARPS"))


def _loads_of_a_lane(case: Case) -> int:
    """Return twice a lane's share of them, and all sums, which one lane may add."""
    return 2 * _loads_of_a_warp(case) // 32 + 32 * _of(case, "WARPS")


def _of_warps(chosen: Callable[[np.ndarray, int, int], np.ndarray]) -> Callable:
    """Return the slip in which only some products count.

    `chosen` returns how often each tile of K counts, from the tiles' numbers, the number of warps
    and that of tiles.
    """

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = a.astype(np.float64), b.astype(np.float64)
        tiles = np.arange(case.k) // DEPTH
        times = chosen(tiles, _of(case, "WARPS"), cover(case.k, DEPTH))
        return (a * times) @ b

    return answer


def warp_cases(numbers: int = 0) -> tuple[Case, ...]:
    """Return cases with each remainder of K over a tile, and 1 to 5 warps."""
    random = np.random.default_rng(numbers)
    cases = []
    for rest in range(DEPTH):
        warps, rows = 1 + (rest + numbers) % 5, (4, 8, 2)[rest % 3]
        m, n = (int(edge - random.integers(0, 2)) for edge in (rows, 32 // rows))
        m, n = (m + 2, n) if rest % 2 else (m, n + 3)
        k = DEPTH * (max(5, 2 * warps) - rest % 2) + rest
        draw, order = ("integers", "normal")[rest % 2], ("forward", "reverse", "shuffle")[rest % 3]
        cases.append(Case(m, n, k, draw=draw, order=order, given=given(warps, rows)))
    return tuple(cases)


SAME_ELEMENT = (
    "Each warp has a sum for every element of the block: add these in shared memory, and let one "
    "warp store, and only what exists."
)
EXERCISE = Exercise(
    name="09.3",
    title="warps that divide K",
    points=4,
    entry="warps_along_k",
    parameters=ABC,
    kind="cuda",
    # The warps' sums may be added atomically: several warps have a sum for one element.
    rules=replace(CUDA, attributes=CUDA.attributes | {"cuda.atomic.add"}),
    limits=Limits(cost=2.5),
    given=GIVEN,
    launch=launch,
    cases=(
        Case(7, 13, 43),
        Case(3, 5, 1),
        Case(4, 8, 19, draw="normal", order="shuffle"),
        Case(260, 3, 5, given=given(1, 8)),
        Case(2, 265, 9, given=given(2, 2), order="reverse"),
        Case(3, 4, 300, draw="normal", given=given(8)),
        *warp_cases(),
    ),
    large=(Case(261, 389, 2_051, draw="normal", given=given(8)),),
    slips=(
        Slip(
            _of_warps(lambda tiles, warps, all: np.full(tiles.shape, warps)),
            "every tile",
            "Every product is counted WARPS times: each warp goes through all of K.",
        ),
        Slip(
            _of_warps(lambda tiles, warps, all: tiles % warps == 0),
            "sums",
            "That is the sum of warp 0 alone. The other warps' sums are missing.",
        ),
        Slip(
            _of_warps(lambda tiles, warps, all: tiles % warps == warps - 1),
            "sums",
            "That is the sum of the last warp alone. The other warps' sums are missing.",
        ),
        Slip(
            _of_warps(lambda tiles, warps, all: tiles % warps != 0),
            "sums",
            "The sum of warp 0 itself is missing.",
        ),
        Slip(
            _of_warps(lambda tiles, warps, all: 1 + (tiles % warps == 0)),
            "sums",
            "The sum of warp 0 is counted twice.",
        ),
        Slip(
            _of_warps(lambda tiles, warps, all: tiles < all // warps * warps),
            "part of k",
            "The tiles of K that are left where their number is no multiple of WARPS are missing.",
        ),
    ),
    counts=(
        Count(
            "global loads",
            lambda case: loads_of_whole_tiles(case, _of(case, "ROWS"), _of(case, "COLUMNS"), DEPTH),
            "C is right, but a block loads elements of A or of B more than once. Each warp loads "
            "its own tiles of K only, and its lanes share them in shared memory.",
            "sharing",
        ),
        ONCE,
        Count(
            "barriers",
            lambda case: 2 * _blocks(case),
            "C is right, but the block waits at more than two barriers. No warp uses another one's "
            "tiles, so in the loop it is enough that the lanes of one warp wait for each other.",
            "barriers",
            best=_blocks,
        ),
        Count(
            "shared loads of a warp",
            _loads_of_a_warp,
            "C is right, but one warp multiplies more than its share of the tiles of K, while "
            "others wait.",
            "share",
        ),
        Count(
            "loads of a thread",
            _loads_of_a_lane,
            "C is right, but one lane does what its warp should share: each lane adds up the "
            "products for an element of its own.",
            "share",
            share=0,
        ),
        Count("shuffles of a thread", lambda case: 0, SHUFFLED, "share", share=0),
    ),
    remedies={
        **dict.fromkeys(("same element", "clamped"), SAME_ELEMENT),
        "staged twice": "Two warps store to one tile: give the shared tiles a first axis of WARPS, "
        "so that each warp has its own.",
        "race": "Within a warp, cuda.syncwarp() orders the accesses, before the products and "
        "behind them. Between warps only cuda.syncthreads() does.",
        "divergent barrier": "The warps go through their loops a different number of times, so no "
        "barrier of the block may stand there. Within a warp, cuda.syncwarp() is enough.",
    },
    hints={
        **{"race": 2, "divergent barrier": 1, "uninitialised read": 2, "sharing": 2, "sums": 3},
        **{"every tile": 1, "barriers": 1, "share": 1, "part of k": 3, "same element": 3},
        **{"out of bounds": 2, "error": 3, "other": 2},
    },
)

"""05.5, the superfluous barriers: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import (
    NO_NEEDLESS_BARRIERS,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    each_its_own,
)

from .._shared import BLOCKS, TILE


def _edge(case: Case) -> int:
    return case.given.get("TILE", TILE)


def _blocks(case: Case) -> tuple:
    edge = _edge(case)
    return (case.m // edge, case.m // edge), (edge, edge)


def _loads(case: Case) -> int:
    """Return how many elements the blocks on and above the diagonal stage, two tiles at a time."""
    along = case.m // _edge(case)
    return along * (along + 1) * _edge(case) * case.k


def _mirrored_tiles(case: Case, a: np.ndarray) -> np.ndarray:
    """What comes of a mirror image whose tiles stand in the right place and are not turned."""
    c, edge = a @ a.T, _edge(case)
    for top in range(0, case.m, edge):
        for left in range(top + edge, case.m, edge):
            part = c[top : top + edge, left : left + edge]
            c[left : left + edge, top : top + edge] = part
    return c


EXERCISE = Exercise(
    name="05.5",
    title="which barriers are superfluous",
    points=3,
    entry="gram",
    parameters=("a", "c"),
    kind="cuda",
    rules=BLOCKS,
    tile=TILE,
    given={"TILE": TILE},
    launch=_blocks,
    operation=Operation(
        arrays=("a", "c"),
        shapes=lambda case: ((case.m, case.k), (case.m, case.m)),
        product=lambda case, a: (a, a.T),
    ),
    cases=(
        Case(8, 8, 12),
        Case(12, 12, 4, draw="normal", order="reverse"),
        Case(4, 4, 20, order="shuffle"),
        # Two and more warps a block: what orders one warp does not order these.
        Case(24, 24, 40, draw="normal", given={"TILE": 8}, order="reverse"),
        Case(12, 12, 36, draw="normal", given={"TILE": 6}, order="shuffle"),
        Case(20, 20, 28),
        Case(32, 32, 4, draw="wide"),
        Case(4, 4, 108, draw="normal"),
        Case(6, 6, 14, given={"TILE": 2}),
    ),
    large=(Case(320, 320, 304, draw="normal", given={"TILE": 16}),),
    slips=(
        Slip(
            _mirrored_tiles,
            "mirror",
            "Below the diagonal every tile stands in its place, but is not transposed: thread "
            "(x, y) reads `lower[x, y]`, which the thread with x and y exchanged has written.",
        ),
    ),
    counts=(
        replace(
            NO_NEEDLESS_BARRIERS,
            most=lambda case: 0,
            message="C is right, and a block still waits in vain: at some barriers no element of "
            "shared memory is written on one side and accessed by another thread on the other.",
            share=0,
            best=lambda case: 0,
        ),
        Count(
            "global loads",
            _loads,
            "C is right, but more is loaded than before: stage both tiles, once for the block, and "
            "remove barriers only.",
        ),
        Count(
            "global stores",
            lambda case: case.m * case.m + case.m * _edge(case),
            "C is right, but more is stored than before: the blocks below the diagonal have "
            "nothing to store, and the others store a tile and its mirror image.",
        ),
        *each_its_own(lambda case: 2),
    ),
    limits=Limits(cost=0.5),
    hints={
        **{"race": 2, "race on the next turn": 2, "divergent barrier": 3, "needless": 1},
        **{"error": 1, "counts": 3, "mirror": 3, "other": 1, "staged twice": 1},
    },
)

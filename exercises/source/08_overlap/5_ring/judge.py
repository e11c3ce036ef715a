"""08.5, a ring of buffers: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import (
    COURSE,
    CUDA,
    ONCE,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    cover,
    each_its_own,
    loads_of_whole_tiles,
    tiled_cases,
)

from .._shared import ABC, FLOAT, TILE, blocks, launch, tile_edge

STAGES = 3


def _stages(case: Case) -> int:
    return case.given.get("STAGES", STAGES)


def _ring(stages: int) -> dict[str, int]:
    return {"STAGES": stages, "AHEAD": stages - 2}


def _steps(case: Case) -> int:
    return cover(case.k, tile_edge(case))


def _phases(case: Case) -> int:
    """Return over how many phases all copies of the course's own answer fly."""
    flights = sum(min(tile, _stages(case) - 1) for tile in range(_steps(case)))
    return 2 * blocks(case) * tile_edge(case) ** 2 * flights


def _least_phases(case: Case) -> int:
    """Leave room for an answer that waits for all of the last tiles at once."""
    ahead = _stages(case) - 1
    room = 2 * blocks(case) * tile_edge(case) ** 2 * (ahead * (ahead - 1) // 2)
    return max(0, _phases(case) - room)


def ring_cases(numbers: int = 0) -> tuple[Case, ...]:
    """Return the cases of tiles, with 2 to 5 buffers in turn."""
    cases = tiled_cases(TILE, numbers)
    return tuple(
        replace(case, given=_ring(2 + (number + numbers) % 4)) for number, case in enumerate(cases)
    )


def _taken(element: Callable) -> Callable:
    """Return the slip whose tile of A holds other elements.

    `element` returns (k, column) of the element of A that takes the place of the one for C's
    element (row, column) and the k-th product.
    """

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        if case.m * case.n * case.k > 1 << 20:
            return None
        edge = tile_edge(case)
        row, col, k = np.ix_(*map(np.arange, (case.m, case.n, edge * _steps(case))))
        at_k, at_column = element(edge, row, col, k)
        inside = (at_k < case.k) & (at_column < case.m)
        left = a[np.minimum(at_k, case.k - 1), np.minimum(at_column, case.m - 1)]
        right = np.vstack([b, np.zeros((k.size - case.k, case.n))])
        return (np.where(inside, left, 0) * right.T[None]).sum(axis=2)

    return answer


EXERCISE = Exercise(
    name="08.5",
    title="a ring of buffers",
    points=4,
    entry="ring",
    parameters=ABC,
    kind="cuda",
    rules=replace(CUDA, names=CUDA.names | set(COURSE)),
    limits=Limits(cost=1.5),
    tile=TILE,
    given={"TILE": TILE} | _ring(STAGES),
    launch=launch,
    operation=Operation(
        arrays=ABC,
        shapes=lambda case: ((case.k, case.m), (case.k, case.n), (case.m, case.n)),
        product=lambda case, a, b: (a.T, b),
    ),
    cases=(
        Case(8, 8, 24),
        Case(7, 5, 23, draw="normal", order="shuffle", given=_ring(4)),
        Case(5, 4, 1, given=_ring(4)),
        # Two warps a block: what orders one warp does not order these.
        Case(9, 10, 43, given={"TILE": 8} | _ring(4), order="reverse"),
        Case(6, 3, 9, given=_ring(5)),
        *ring_cases(),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"TILE": 16} | _ring(4)),),
    since=(8, 0),
    slips=(
        Slip(
            _taken(
                lambda edge, row, col, k: (
                    k // edge * edge + row % edge,
                    row - row % edge + k % edge,
                )
            ),
            "transposed",
            "A's tile is read as if its rows ran along M. It is stored as A is, with k along the "
            "first axis.",
        ),
        Slip(
            _taken(lambda edge, row, col, k: (k, col // edge * edge + row % edge)),
            "transposed",
            "The columns of A are those of another block: a column of A is a row of C, and "
            "cuda.blockIdx.y counts these.",
        ),
    ),
    counts=(
        Count(
            "global loads",
            lambda case: loads_of_whole_tiles(case, *[tile_edge(case)] * 3),
            "C is right, but it takes more from global memory than the tiles hold: multiply what "
            "lies in shared memory.",
            "sharing",
            share=0,
        ),
        ONCE,
        *each_its_own(),
        Count(
            "plain global loads",
            lambda case: 0,
            "C is right, but some elements come by a load and not by `copy_async`.",
            "plain",
        ),
        Count(
            "shared bytes",
            lambda case: 2 * _stages(case) * tile_edge(case) ** 2 * FLOAT,
            "C is right, but STAGES buffers of each tile are enough.",
            "memory",
        ),
        Count(
            "barriers",
            lambda case: blocks(case) * (_steps(case) + 1),
            "C is right, but the block waits more often than once for each tile of K. In a ring, "
            "the new copies go to the buffer that was multiplied one iteration ago, so the barrier "
            "behind the wait is enough.",
            "barriers",
            best=lambda case: blocks(case) * _steps(case),
        ),
        Count(
            "phases in flight",
            None,
            "C is right, but the copies have too little time: the multiplications during which "
            "they are in flight, added up over all copies, are too few. Start a tile's copies "
            "before the multiplications of the STAGES − 1 tiles before it, and wait for the oldest "
            "group only.",
            "flight",
            least=_least_phases,
            best=_phases,
        ),
    ),
    remedies={
        "never copied": "No thread has begun a copy to it. Under an `if` a copy puts no zero: let "
        "every thread begin its copy, and say by the last argument whether the element is present.",
        "beyond a tile": "The buffers are the first axis, (STAGES, TILE, TILE), and their number "
        "starts again at 0 after STAGES − 1.",
    },
    hints={
        **{"race": 2, "uninitialised read": 2, "never copied": 2, "divergent barrier": 3},
        **{"flight": 1, "plain": 3, "barriers": 1, "transposed": 3, "beyond a tile": 3},
        **{"sharing": 1, "memory": 1, "out of bounds": 3, "part of k": 3, "error": 3, "other": 2},
    },
)

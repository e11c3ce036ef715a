"""What the exercises of chapter 5 share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    Case,
    Count,
    Slip,
    loads_of_whole_tiles,
)

TPB, TILE = 3, 4

# Nine threads are one warp; the next block may have more.
BLOCKS = replace(CUDA, attributes=CUDA.attributes - {"cuda.syncwarp"})
ABC = ("a", "b", "c")
MOST_PRODUCTS = 1 << 20  # of a case whose products are looked at one by one


def corner(index: np.ndarray, edge: int = TPB) -> np.ndarray:
    """Return where the tile of an index begins."""
    return index - index % edge


def guarded(part: Callable) -> Callable:
    """Return what computes C where a guard leaves out more: `part` says which products stay."""

    def made(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        if case.m * case.n * case.k > MOST_PRODUCTS:
            return None
        row, col, k = np.indices((case.m, case.n, case.k))
        edge = case.given.get("TILE", TILE)
        return np.where(part(case, edge, row, col, k), a[row, k] * b[k, col], 0).sum(axis=2)

    return made


def _a_by_c(case: Case, edge: int, row: Any, col: Any, k: Any) -> Any:
    return corner(col, edge) + k % edge < case.n


def _b_by_c(case: Case, edge: int, row: Any, col: Any, k: Any) -> Any:
    return corner(row, edge) + k % edge < case.m


def _both_by_c(*at: Any) -> Any:
    return _a_by_c(*at) & _b_by_c(*at)


def _all_four(case: Case, edge: int, row: Any, col: Any, k: Any) -> Any:
    """Both loads where row, start + x, start + y and col are inside, of whoever loads."""
    of_a = (k < case.k) & (corner(k, edge) + row % edge < case.k)
    of_b = corner(k, edge) + col % edge < case.k
    return of_a & of_b & _both_by_c(case, edge, row, col, k)


GUARDS = tuple(
    Slip(guarded(part), "guards", message)
    for part, message in (
        (
            lambda case, edge, row, col, k: col < case.k,
            "The columns of B beyond K are zeros: the guard of B compares `col` with K, and B has "
            "`b.shape[1]` columns.",
        ),
        (
            lambda case, edge, row, col, k: row < case.k,
            "The rows of A beyond K are zeros: the guard of A compares `row` with K, and A has "
            "`a.shape[0]` rows.",
        ),
        (
            _a_by_c,
            "A thread beyond C's columns loads a zero of A: its own column of C is no matter "
            "there, it loads A's column `start + x`.",
        ),
        (
            _b_by_c,
            "A thread beyond C's rows loads a zero of B: its own row of C is no matter there, it "
            "loads B's row `start + y`.",
        ),
        (
            _both_by_c,
            "A thread beyond C's edges loads zeros of A and B: where it stands in C is no matter "
            "there. It loads A's column `start + x` and B's row `start + y`.",
        ),
        (
            _all_four,
            "One guard for both loads leaves out too much: a thread may have an element of A to "
            "load and none of B. A's guard asks for `row` and `start + x`, B's for `start + y` and "
            "`col`.",
        ),
    )
)


def fewest_loads(edge: int) -> Count:
    return Count(
        "global loads",
        lambda case: loads_of_whole_tiles(case, *[case.given.get("TILE", edge)] * 3),
        f"C is right, by the long way: tiles of {edge}×{edge} take fewer loads from global memory. "
        "Let the threads of a block share what they stage.",
    )

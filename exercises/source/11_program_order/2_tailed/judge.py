"""11.2, the tail of K: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.programs import (
    LOADS,
    PARAMETERS,
    STEPS,
    STORES,
    block_of,
    blocks,
    launch,
)
from tiled_matmul.grader.spec import TRITON, Case, Count, Exercise, Slip, cover, tiled_cases


def _whole_rows(case: Case) -> int:
    """Return how many elements are loaded where rows and columns beyond an edge wrap around."""
    block = block_of(case)
    rows, columns = cover(case.m, block["BLOCK_M"]), cover(case.n, block["BLOCK_N"])
    depth = cover(case.k, block["BLOCK_K"]) * block["BLOCK_K"]
    return rows * columns * (block["BLOCK_M"] + block["BLOCK_N"]) * depth


def _wrapped(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    depth = block_of(case)["BLOCK_K"]
    k = np.arange(cover(case.k, depth) * depth) % case.k
    return a[:, k] @ b[k] if len(k) > case.k else None


MASK = (
    "Which k does the mask let through? In the step that begins at `start` the k of the tile are "
    "start, start + 1, and so on, and those below K are there. They run along A's columns and down "
    "B's rows, and the next step begins BLOCK_K further."
)

EXERCISE = Exercise(
    name="11.2",
    title="the tail of K",
    points=3,
    entry="tailed",
    parameters=PARAMETERS,
    kind="triton",
    rules=TRITON,
    launch=launch,
    cases=(
        # Beyond the edges are zeros, so the numbers come out right.
        Case(20, 35, 40, "float16", corner=True),
        Case(17, 40, 65, "float16", given=blocks(16, 32, 32), by_columns="a"),
        Case(18, 20, 50, "float16", draw="normal", by_columns="b"),
        *tiled_cases(16, deep=1, dtype="float16"),
        Case(21, 18, 90, "float16", draw="normal", apart=True),
        Case(19, 17, 520, "float16", draw="wide"),
    ),
    large=(Case(517, 389, 301, "float16", draw="normal", given=blocks(64, 64, 32)),),
    counts=(Count("elements loaded", _whole_rows, LOADS.message), STEPS, STORES),
    slips=(
        Slip(
            _wrapped,
            "wrapped",
            "Columns of A and rows of B wrap around at K, so the first ones are multiplied again "
            "in the last step: rows of A may wrap, as their sums are not stored, but K is summed "
            "over. Mask it, with zeros.",
        ),
    ),
    remedies={
        **dict.fromkeys(("unmasked tail", "out of bounds"), MASK),
    },
    hints={
        **{"unmasked tail": 1, "out of bounds": 1, "not read": 3, "part of k": 3, "zero": 3},
        **{"wrapped": 1, "not finite": 2, "not stored": 2, "no tile": 2, "stale": 2},
        **{"forbidden": 1, "error": 3, "other": 3},
    },
)

"""11.2, the tail of K: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.programs import (
    LOADS,
    OWN_TILE,
    PARAMETERS,
    STEPS,
    STORES,
    block_of,
    blocks,
    launch,
    whole_rows,
)
from tiled_matmul.grader.spec import TRITON, Case, Count, Exercise, Slip, cover, tiled_cases


def _best(case: Case) -> int:
    """Return how many elements are loaded if only those that lie beyond the end of K are not."""
    block = block_of(case)
    rows, columns = block["BLOCK_M"], block["BLOCK_N"]
    return cover(case.m, rows) * cover(case.n, columns) * (rows + columns) * case.k


def _wrapped(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    depth = block_of(case)["BLOCK_K"]
    k = np.arange(cover(case.k, depth) * depth) % case.k
    return a[:, k] @ b[k] if len(k) > case.k else None


MASK = (
    "Rows and columns wrap around here, but K does not, so a load that reaches past K needs a "
    "mask that lets through exactly the k below K. In the step that begins at `start` the k of "
    "the tile are start, start + 1, and so on. They run along A's columns and down B's rows, and "
    "the next step begins BLOCK_K further."
)
CUT = (
    "Either the loop ends before the last, incomplete block, or a mask leaves out too much: "
    "`start` already is the first k of the step, so K - start of them are there."
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
        Case(70, 90, 130, "float16", given=blocks(64, 32, 64), order="reverse"),
        Case(35, 40, 70, "float16", given=blocks(32, 16, 64), by_columns="a"),
        Case(18, 20, 50, "float16", draw="normal", by_columns="b"),
        *tiled_cases(16, deep=1, dtype="float16"),
        Case(21, 18, 90, "float16", draw="normal", apart=True),
        Case(19, 17, 520, "float16", draw="wide"),
    ),
    large=(Case(517, 389, 301, "float16", draw="normal", given=blocks(64, 64, 32)),),
    counts=(
        Count("elements loaded", whole_rows, LOADS.message, best=_best),
        STEPS,
        STORES,
        OWN_TILE,
    ),
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
        "not read": CUT,
    },
    hints={
        **{"unmasked tail": 1, "out of bounds": 1, "not read": 3, "part of k": 3, "zero": 3},
        **{"wrapped": 1, "not finite": 2, "not stored": 2, "no tile": 2, "stale": 2},
        **{"forbidden": 1, "error": 3, "other": 3},
    },
)

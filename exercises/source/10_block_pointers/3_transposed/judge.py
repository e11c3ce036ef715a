"""10.3, A transposed: what is asked for, and how an answer is judged."""

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
)
from tiled_matmul.grader.spec import TRITON, Case, Exercise, Operation, Slip, cover, tiled_cases

from .._shared import EDGES, REMEDIES


def _plain(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    return a @ b if case.m == case.k else None


def _tiles_not_turned(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Return the product with each tile of A at its place, but not transposed itself."""
    block = block_of(case)
    edge = block["BLOCK_K"]
    if block["BLOCK_M"] != edge:
        return None
    rows, columns = cover(case.k, edge), cover(case.m, edge)
    whole = np.zeros((rows * edge, columns * edge))
    whole[: case.k, : case.m] = a
    tiles = whole.reshape(rows, edge, columns, edge).transpose(0, 3, 2, 1)
    turned = tiles.reshape(whole.shape)[:, : case.m]
    below = np.zeros((rows * edge, case.n))
    below[: case.k] = b
    return turned.T @ below


EXERCISE = Exercise(
    name="10.3",
    title="A transposed",
    points=3,
    entry="transposed",
    parameters=PARAMETERS,
    kind="triton",
    rules=TRITON,
    launch=launch,
    operation=Operation(
        arrays=("a", "b", "c"),
        shapes=lambda case: ((case.k, case.m), (case.k, case.n), (case.m, case.n)),
        product=lambda case, a, b: (a.T, b),
    ),
    cases=(
        Case(40, 24, 40, "float16"),  # as many rows as columns: A·B can be computed as well
        Case(20, 35, 90, "float16"),
        Case(33, 20, 50, "float16", given=blocks(16, 32, 64)),
        Case(40, 20, 24, "float16", given=blocks(32, 16, 16), by_columns="ac"),
        Case(32, 19, 520, "float16", draw="wide"),
        Case(70, 90, 130, "float16", given=blocks(64, 32, 64), order="reverse"),
        *tiled_cases(16, deep=1, dtype="float16"),
        Case(21, 18, 90, "float16", draw="normal", apart=True),
    ),
    large=(Case(517, 389, 301, "float16", draw="normal", given=blocks(64, 64, 32)),),
    counts=(LOADS, STEPS, STORES, OWN_TILE),
    slips=(
        Slip(
            _plain,
            "not transposed",
            "That is A·B. A is stored as K × M, so row m of C takes column m of what is stored.",
        ),
        Slip(
            _tiles_not_turned,
            "not transposed",
            "The tiles of A are the right ones, but each has to be transposed too, before it is "
            "multiplied: with tl.trans, or by the strides of the pointers.",
        ),
    ),
    remedies=REMEDIES
    | {
        "no tile": "Shape, strides, corner and block shape of A's tile have to be in one order: "
        "(K, M) with (a_row, a_col), or (M, K) with (a_col, a_row). The strides are those that "
        "were passed.",
        "not read": "Does A's tile begin at the program's own column of what is stored, does it "
        "move down along K by BLOCK_K rows, and does the loop run over the last, incomplete block?",
        **dict.fromkeys(
            ("unmasked tail", "out of bounds"),
            f"A is stored as K × M: it has K rows, and M columns. {EDGES}",
        ),
    },
    hints={
        **{"stale": 1, "not stored": 1, "stored twice": 1, "no tile": 2, "transposed": 1},
        **{"unmasked tail": 2, "out of bounds": 2, "not read": 1, "part of k": 2, "zero": 2},
        **{"not transposed": 2, "not finite": 3, "scaled": 2, "counts": 1, "low precision": 3},
        **{"error": 2, "types": 2, "other": 3, "forbidden": 1, "once": 3, "steps": 3},
    },
)

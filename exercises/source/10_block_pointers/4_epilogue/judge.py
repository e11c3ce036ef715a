"""10.4, an epilogue: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.programs import (
    BLOCKS,
    OWN_TILE,
    STEPS,
    STORES,
    block_of,
    blocks,
    exact_loads,
    launch,
    tiled_loads,
)
from tiled_matmul.grader.spec import (
    TRITON,
    Case,
    Count,
    Exercise,
    Operation,
    Slip,
    cover,
    tiled_cases,
)

from .._shared import EDGES, REMEDIES


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _layer(case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> tuple:
    return _relu(a @ b + bias), abs(a) @ abs(b) + abs(bias)


def _biases(case: Case) -> int:
    """Return how many elements of the bias are loaded, if each program loads BLOCK_N."""
    block = block_of(case)
    return cover(case.m, block["BLOCK_M"]) * cover(case.n, block["BLOCK_N"]) * block["BLOCK_N"]


def _rounded_before(case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray:
    sums = (a @ b).astype(np.float16).astype(np.float64)
    return _relu(sums + bias).astype(np.float16).astype(np.float64)


def _in_each_step(case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return _relu(a @ b + cover(case.k, block_of(case)["BLOCK_K"]) * bias)


def _clipped_in_each_step(case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray):
    depth, sums = block_of(case)["BLOCK_K"], np.zeros((case.m, case.n))
    for k in range(0, case.k, depth):
        sums = _relu(sums + a[:, k : k + depth] @ b[k : k + depth])
    return _relu(sums + bias)


def _along_rows(case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray | None:
    return _relu(a @ b + bias[:, None]) if case.m == case.n else None


EXERCISE = Exercise(
    name="10.4",
    title="an epilogue",
    points=3,
    entry="layer",
    parameters=(
        *("a", "b", "bias", "c", "M", "N", "K", "a_row", "a_col", "b_row", "b_col"),
        *("bias_step", "c_row", "c_col", *BLOCKS),
    ),
    kind="triton",
    rules=TRITON,
    launch=launch,
    operation=Operation(
        arrays=("a", "b", "bias", "c"),
        shapes=lambda case: ((case.m, case.k), (case.k, case.n), (case.n,), (case.m, case.n)),
        result=_layer,
        terms=lambda case: case.k + 1,
    ),
    cases=(
        Case(35, 35, 90, "float16"),  # a bias along the rows can be computed as well
        Case(32, 48, 64, "float16"),  # whole tiles: one load too many shows
        Case(24, 35, 90, "float16", draw="wide"),  # sums beyond 2048, which float16 rounds
        Case(33, 20, 50, "float16", given=blocks(16, 32, 64)),
        Case(20, 40, 24, "float16", given=blocks(32, 16, 16), by_columns="bc"),
        Case(17, 35, 520, "float16", draw="wide"),
        Case(70, 90, 130, "float16", given=blocks(64, 32, 64), order="reverse"),
        *tiled_cases(16, deep=1, dtype="float16"),
        Case(21, 18, 90, "float16", draw="normal", apart=True),
    ),
    large=(Case(517, 389, 301, "float16", draw="normal", given=blocks(64, 64, 32)),),
    counts=(
        Count(
            "elements loaded",
            lambda case: tiled_loads(case) + _biases(case),
            "C is right, by the long way: a program needs each of its tiles of A and B once, and "
            "BLOCK_N elements of the bias once, as a row that is spread over the tile.",
            best=lambda case: exact_loads(case) + cover(case.m, block_of(case)["BLOCK_M"]) * case.n,
        ),
        STEPS,
        STORES,
        OWN_TILE,
    ),
    slips=(
        Slip(
            lambda case, a, b, bias: a @ b + bias,
            "no relu",
            "That is A·B + bias: negative numbers are still there, where relu gives 0.",
        ),
        Slip(
            lambda case, a, b, bias: _relu(a @ b),
            "no bias",
            "That is relu(A·B): the bias is missing.",
        ),
        Slip(
            lambda case, a, b, bias: _relu(a @ b) + bias,
            "relu first",
            "That is relu(A·B) + bias: add the bias first, and take the maximum with 0 afterwards.",
        ),
        Slip(
            lambda case, a, b, bias: abs(a @ b + bias),
            "no relu",
            "That is the absolute value: relu(x) is 0 where x is negative.",
        ),
        Slip(
            _in_each_step,
            "in the loop",
            "The bias has been added in every step along K: add it once, behind the loop.",
        ),
        Slip(
            _clipped_in_each_step,
            "in the loop",
            "relu was applied in every step along K: a sum that is negative on the way may still "
            "become positive. Apply it once, behind the loop.",
        ),
        Slip(
            _along_rows,
            "along rows",
            "Each row of C got one element of the bias: element n belongs to column n, so the "
            "vector has to lie as a row, [None, :].",
        ),
        Slip(
            _rounded_before,
            "rounded twice",
            "The sums were rounded to float16 before the bias was added, and once more afterwards: "
            "stay in float32 until the store.",
        ),
    ),
    remedies=REMEDIES
    | dict.fromkeys(
        ("unmasked tail", "out of bounds"),
        f"{EDGES} The bias has N elements, which are bias_step positions apart.",
    ),
    hints={
        **{"stale": 1, "not stored": 1, "stored twice": 1, "no tile": 1, "not read": 2},
        **{"unmasked tail": 2, "out of bounds": 2, "part of k": 1, "not finite": 3},
        **{"no relu": 1, "no bias": 1, "relu first": 1, "in the loop": 1, "along rows": 2},
        **{"rounded twice": 3, "low precision": 3, "counts": 2, "steps": 1, "once": 1},
        **{"error": 3, "types": 3, "forbidden": 1, "other": 1},
    },
)

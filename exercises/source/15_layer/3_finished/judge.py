"""15.3, finish the tile: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

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

EDGES = (
    "Either an edge is not checked, or these are not the addresses of its elements. The bias has N "
    "elements, bias_step positions apart. The residual is as large as C, and has the strides r_row "
    "and r_col. A mask compares rows with M and columns with N, joined by &; a block pointer takes "
    "the matrix's shape, and checks both axes with boundary_check=(0, 1)."
)
SIGMOID = 16  # roundings of a bias, an exponential, a division, two products and a residual


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -700, 700)))


def _silu(x: np.ndarray) -> np.ndarray:
    return x * _sigmoid(x)


def _rounded(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float64)


def _layer(
    case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray, residual: np.ndarray
) -> tuple:
    sums = a @ b + bias
    return _silu(sums) + residual, abs(a) @ abs(b) + abs(bias) + abs(residual)


def _made(layer: Callable) -> Callable:
    """Return what layer(sums, bias, residual) stores."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray, residual: np.ndarray):
        return _rounded(layer(a @ b, bias, residual))

    return answer


def _along_rows(
    case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray, residual: np.ndarray
) -> np.ndarray | None:
    if case.m != case.n:
        return None
    return _rounded(_silu(a @ b + bias[:, None]) + residual)


def _steps(case: Case) -> int:
    return cover(case.k, block_of(case)["BLOCK_K"])


def _bias_in_each_step(
    case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray, residual: np.ndarray
) -> np.ndarray:
    return _rounded(_silu(a @ b + _steps(case) * bias) + residual)


def _silu_in_each_step(
    case: Case, a: np.ndarray, b: np.ndarray, bias: np.ndarray, residual: np.ndarray
) -> np.ndarray:
    depth, sums = block_of(case)["BLOCK_K"], np.zeros((case.m, case.n))
    for k in range(0, case.k, depth):
        sums = _silu(sums + a[:, k : k + depth] @ b[k : k + depth])
    return _rounded(_silu(sums + bias) + residual)


def _beside(case: Case, rows: int, columns: int) -> int:
    """Return how many elements of the bias and the residual are loaded, for C of this size."""
    return cover(case.m, block_of(case)["BLOCK_M"]) * columns + rows * columns


def _whole(case: Case) -> int:
    block = block_of(case)
    rows = cover(case.m, block["BLOCK_M"]) * block["BLOCK_M"]
    return _beside(case, rows, cover(case.n, block["BLOCK_N"]) * block["BLOCK_N"])


EXERCISE = Exercise(
    name="15.3",
    title="finish the tile",
    points=4,
    entry="finished_layer",
    parameters=(
        *("a", "b", "bias", "residual", "c", "M", "N", "K", "a_row", "a_col", "b_row", "b_col"),
        *("bias_step", "r_row", "r_col", "c_row", "c_col", *BLOCKS),
    ),
    kind="triton",
    rules=TRITON,
    launch=launch,
    operation=Operation(
        arrays=("a", "b", "bias", "residual", "c"),
        shapes=lambda case: (
            *((case.m, case.k), (case.k, case.n), (case.n,)),
            *((case.m, case.n), (case.m, case.n)),
        ),
        result=_layer,
        terms=lambda case: case.k + SIGMOID,
    ),
    cases=(
        Case(35, 35, 90, "float16"),  # a bias along the rows can be computed as well
        Case(32, 48, 64, "float16"),  # whole tiles: one load too many shows
        Case(24, 35, 40, "float16", draw="normal"),  # small sums, for which silu is no relu
        Case(24, 35, 90, "float16", draw="wide"),  # sums beyond 2048, which float16 rounds
        Case(33, 20, 50, "float16", given=blocks(16, 32, 64)),
        Case(20, 40, 24, "float16", given=blocks(32, 16, 16), by_columns="bc"),
        Case(19, 37, 24, "float16", by_columns="residual"),
        Case(17, 35, 520, "float16", draw="wide"),
        Case(70, 90, 130, "float16", given=blocks(64, 32, 64), order="reverse"),
        *tiled_cases(16, deep=1, dtype="float16"),
        Case(21, 18, 90, "float16", draw="normal", apart=True),
    ),
    large=(Case(517, 389, 301, "float16", draw="normal", given=blocks(64, 64, 32)),),
    counts=(
        Count(
            "elements loaded",
            lambda case: tiled_loads(case) + _whole(case),
            "C is right, by the long way: a program needs each of its tiles of A and B once, "
            "BLOCK_N elements of the bias once, as a row that is spread over the tile, and its "
            "tile of the residual once.",
            best=lambda case: exact_loads(case) + _beside(case, case.m, case.n),
        ),
        STEPS,
        STORES,
        OWN_TILE,
    ),
    slips=(
        Slip(
            _made(lambda sums, bias, residual: sums + bias + residual),
            "no silu",
            "That is A·B + bias + residual: silu is missing.",
        ),
        Slip(
            _made(lambda sums, bias, residual: _silu(sums) + residual),
            "no bias",
            "That is silu(A·B) + residual: the bias is missing.",
        ),
        Slip(
            _made(lambda sums, bias, residual: _silu(sums + bias)),
            "no residual",
            "That is silu(A·B + bias): the residual is missing.",
        ),
        Slip(
            _made(lambda sums, bias, residual: _silu(sums) + bias + residual),
            "silu first",
            "That is silu(A·B) + bias + residual: add the bias first, and apply silu afterwards.",
        ),
        Slip(
            _made(lambda sums, bias, residual: _silu(sums + bias + residual)),
            "residual first",
            "That is silu(A·B + bias + residual): apply silu first, and add the residual "
            "afterwards.",
        ),
        Slip(
            _made(lambda sums, bias, residual: _silu(sums + residual) + bias),
            "residual first",
            "That is silu(A·B + residual) + bias: the bias and the residual have changed places.",
        ),
        Slip(
            _made(lambda sums, bias, residual: _sigmoid(sums + bias) + residual),
            "no silu",
            "That is sigmoid(A·B + bias) + residual: silu(x) is x · sigmoid(x).",
        ),
        Slip(
            _made(lambda sums, bias, residual: sums * _sigmoid(sums + bias) + residual),
            "two values",
            "The sigmoid was multiplied by the sums without the bias: both factors of silu take "
            "the same x = A·B + bias.",
        ),
        Slip(
            _made(lambda sums, bias, residual: (sums + bias) * _sigmoid(sums) + residual),
            "two values",
            "The sigmoid was taken of the sums without the bias: both factors of silu take the "
            "same x = A·B + bias.",
        ),
        Slip(
            _made(lambda sums, bias, residual: np.maximum(sums + bias, 0) + residual),
            "no silu",
            "That is relu(A·B + bias) + residual: silu(x) is x · sigmoid(x).",
        ),
        Slip(
            _bias_in_each_step,
            "in the loop",
            "The bias has been added in every step along K: add it once, behind the loop.",
        ),
        Slip(
            _silu_in_each_step,
            "in the loop",
            "silu was applied in every step along K: only complete sums have a silu. Apply it "
            "once, behind the loop.",
        ),
        Slip(
            _along_rows,
            "along rows",
            "Each row of C got one element of the bias: element n belongs to column n, so the "
            "vector has to lie as a row, [None, :].",
        ),
        Slip(
            _made(lambda sums, bias, residual: _silu(_rounded(sums) + bias) + residual),
            "rounded twice",
            "The sums were rounded to float16 before the bias was added: stay in float32 until "
            "the store.",
        ),
        Slip(
            _made(lambda sums, bias, residual: _silu(_rounded(_rounded(sums) + bias)) + residual),
            "rounded twice",
            "The bias was added in float16: stay in float32 until the store.",
        ),
        Slip(
            _made(lambda sums, bias, residual: _rounded(_silu(sums + bias)) + residual),
            "rounded twice",
            "silu's result was rounded to float16 before the residual was added: stay in float32 "
            "until the store.",
        ),
    ),
    remedies={
        "unmasked tail": EDGES,
        "out of bounds": EDGES,
        "not finite": "Either a load leaves elements out and does not define them, by other=0.0 or "
        'padding_option="zero", or an exponential overflows: exp(x) / (1 + exp(x)) is NaN where x '
        "is large, and tl.sigmoid(x) is not.",
        "not read": "Does the tile begin at the program's own corner, and does the loop run over "
        "the last, incomplete block of K? The bias and the residual are needed by every program.",
        "not stored": "x goes along the columns here, y along the rows: program_id(0) makes the "
        "left edge, program_id(1) the top. Is C's tile at (top, left), and does the store have a "
        "mask?",
        "stored twice": "x goes along the columns here, y along the rows: program_id(0) makes the "
        "left edge, program_id(1) the top. If the kernel takes rows `% M` and columns `% N` for "
        "its loads, it needs both again, without `%`, for the store and its mask.",
    },
    hints={
        **{"stale": 1, "not stored": 1, "stored twice": 1, "no tile": 2, "not read": 2},
        **{"unmasked tail": 2, "out of bounds": 2, "part of k": 1, "not finite": 2},
        **{"no silu": 1, "no bias": 1, "no residual": 1, "silu first": 1, "residual first": 1},
        **{"two values": 3, "in the loop": 1, "along rows": 2, "rounded twice": 3},
        **{"low precision": 3, "counts": 2, "steps": 1, "once": 1, "error": 3, "types": 3},
        **{"value": 3, "forbidden": 1, "other": 1},
    },
)

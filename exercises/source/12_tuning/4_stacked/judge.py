"""12.4, many small matrices: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.programs import BLOCKS, OWN_TILE, STEPS, block_of, blocks, tiled_loads
from tiled_matmul.grader.programs import launch as launch_of_one
from tiled_matmul.grader.spec import (
    TRITON,
    Case,
    Count,
    Exercise,
    Operation,
    Slip,
    depths,
    loads_of_tiles,
)

STRIDES = ("a_matrix", "a_row", "a_col", "b_row", "b_col", "c_matrix", "c_row", "c_col")


def _as_one(case: Case) -> Case:
    """Return the case of one matrix that has all rows of the batch."""
    return replace(case, m=case.parts * case.m, parts=0)


def _shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    z, m, n, k = case.parts, case.m, case.n, case.k
    return (z, m, k), (k, n), (z, m, n)


def _factors(case: Case, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return a, np.broadcast_to(b, (case.parts, *b.shape))


def _described(case: Case) -> str:
    block = "×".join(str(block_of(case)[name]) for name in BLOCKS)
    z, m, n, k = case.parts, case.m, case.n, case.k
    layout = ", some stored by columns" if case.by_columns else ""
    layout = ", with gaps between the elements" if case.apart else layout
    return f"{z} matrices of {m}×{k} times B {k}×{n} in tiles of {block}{layout}"


def _loads(case: Case) -> int:
    """Return how many elements are loaded where nothing beyond an edge is."""
    block, rows = block_of(case), case.parts * case.m
    return loads_of_tiles(rows, case.n, case.k, block["BLOCK_M"], block["BLOCK_N"])


def _by_matrix(case: Case) -> tuple:
    return launch_of_one(_as_one(case))


def _first_alone(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """The product of the first matrix in each place, if the batch has several."""
    return np.broadcast_to(a[0] @ b, (case.parts, case.m, case.n)) if case.parts > 1 else None


EXISTS = (
    "Row numbers exist below Z · M, k below K, and columns below N. A row number is taken apart "
    "into the matrix and the row within it, each with a stride of its own: the next matrix need "
    "not begin where one ends."
)

EXERCISE = Exercise(
    name="12.4",
    title="many small matrices",
    points=4,
    entry="stacked",
    parameters=("a", "b", "c", "Z", "M", "N", "K", *STRIDES, *BLOCKS),
    kind="triton",
    rules=TRITON,
    operation=Operation(
        ("a", "b", "c"), _shapes, _factors, sizes=("parts", "m", "n", "k"), describe=_described
    ),
    launch=_by_matrix,
    cases=(
        Case(5, 35, 90, "float16", parts=7),
        # One matrix does not begin where the previous one ends.
        Case(5, 19, 21, "float16", draw="normal", parts=7, apart=True),
        Case(3, 40, 50, "float16", parts=13, by_columns="ac"),
        Case(7, 33, 64, "float16", draw="normal", parts=5, given=blocks(32, 16, 64)),
        Case(21, 18, 47, "float16", parts=3, by_columns="b"),  # more rows than a tile has
        Case(1, 17, 33, "float16", parts=40),
        Case(40, 17, 33, "float16", parts=1, apart=True),
        Case(4, 18, 520, "float16", draw="wide", parts=2),  # sums in float16 show
        Case(2, 300, 3, "float16", draw="normal", parts=3, given=blocks(16, 64, 16)),
        Case(9, 3, 1, "float16", parts=30),
        *(Case(3, 4, k, "float16", parts=6, apart=k % 2 == 0) for k in depths(16)),
    ),
    large=(Case(217, 389, 301, "float16", draw="normal", parts=3, given=blocks(64, 64, 32)),),
    counts=(
        Count(
            "elements loaded",
            lambda case: tiled_loads(_as_one(case)),
            "C is right, by the long way: a program needs each tile of its rows of A, and of its "
            "column of B, once.",
            best=_loads,
        ),
        replace(STEPS, most=lambda case: STEPS.most(_as_one(case))),
        Count(
            "products",
            None,
            "C is right, and the products are made without `tl.dot`: the tensor cores have no "
            "work.",
            "no dot",
            least=lambda case: case.parts * case.m * case.n * case.k,
        ),
        Count(
            "elements stored",
            lambda case: case.parts * case.m * case.n,
            "C is right, but it is stored again and again: the sums are ready after the loop over "
            "K.",
            "once",
        ),
        OWN_TILE,
    ),
    slips=(
        Slip(
            _first_alone,
            "first",
            "Each matrix of C is the product of matrix 0 of A: the number of the matrix belongs "
            "into the address of A as well.",
        ),
    ),
    remedies={
        **dict.fromkeys(("unmasked tail", "out of bounds"), EXISTS),
        "not stored": "The rows of all matrices are numbered through, from 0 to Z · M − 1, and "
        "program_id(1) has BLOCK_M of them. Does the mask of the store let through every row "
        "number below Z · M, in whichever matrix it is?",
        "not read": "The rows of all matrices are numbered through, from 0 to Z · M − 1. Does the "
        "program read all of its BLOCK_M rows, in whichever matrices they are, and does the loop "
        "reach the end of K?",
        "stored twice": "A row number belongs to one row of one matrix: its quotient by M is the "
        "matrix, its remainder the row.",
    },
    hints={
        **{"not stored": 1, "not read": 1, "stored twice": 1, "first": 3, "stale": 1},
        **{"out of bounds": 2, "unmasked tail": 2, "not finite": 2, "zero": 2},
        **{"part of k": 2, "no tile": 3, "counts": 1, "steps": 2, "once": 2, "no dot": 1},
        **{"low precision": 3, "forbidden": 1, "types": 3, "error": 3, "other": 3},
    },
)

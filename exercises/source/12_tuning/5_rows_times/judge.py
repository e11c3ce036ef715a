"""12.5, a matrix times a vector: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.programs import own_rows
from tiled_matmul.grader.spec import (
    TRITON,
    Case,
    Count,
    Exercise,
    Operation,
    Slip,
    cover,
    depths,
)

GIVEN = {"BLOCK_M": 8, "BLOCK_K": 16}
LAYOUTS = {"a": "A by columns", "x": "x a column of a matrix", "c": "c a column of a matrix"}


def _tile(rows: int, columns: int) -> dict[str, int]:
    return {"BLOCK_M": rows, "BLOCK_K": columns}


def _blocks(case: Case) -> dict[str, int]:
    return GIVEN | dict(case.given)


def _programs(case: Case) -> int:
    return cover(case.m, _blocks(case)["BLOCK_M"])


def _launch(case: Case) -> tuple:
    return (_programs(case),), _blocks(case)


def _described(case: Case) -> str:
    block = "×".join(map(str, _blocks(case).values()))
    columns = [text for name, text in LAYOUTS.items() if name in case.by_columns]
    gaps = ["gaps between the elements"] * case.apart
    return ", ".join([f"A {case.m}×{case.k} times x in tiles of {block}", *columns, *gaps])


def _loads(case: Case) -> int:
    """Return the elements of whole tiles of A, and of as many columns of x in each program."""
    rows, depth = _blocks(case).values()
    return _programs(case) * (rows + 1) * cover(case.k, depth) * depth


def _needed(case: Case) -> int:
    return (case.m + _programs(case)) * case.k


def _steps(case: Case, a: np.ndarray, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the columns of A and the elements of x of each step along K, with zeros beyond."""
    depth = _blocks(case)["BLOCK_K"]
    more = cover(case.k, depth) * depth - case.k
    a, x = np.pad(a, ((0, 0), (0, more))), np.pad(x, (0, more))
    return [(a[:, k : k + depth], x[k : k + depth]) for k in range(0, x.size, depth)]


def _by_blocks(case: Case, a: np.ndarray, x: np.ndarray, block) -> np.ndarray | None:
    """Return what comes of a mistake that only square tiles allow, a block of rows at a time."""
    edge, depth = _blocks(case).values()
    if edge != depth:
        return None
    a = np.pad(a, ((0, _programs(case) * edge - case.m), (0, 0)))
    made = [
        sum(block(part, xs) for part, xs in _steps(case, a[top : top + edge], x))
        for top in range(0, case.m, edge)
    ]
    return np.concatenate(made)[: case.m]


def _along_columns(case: Case, a: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    return _by_blocks(case, a, x, lambda part, xs: (part * xs).sum(axis=0))


def _as_a_column(case: Case, a: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    return _by_blocks(case, a, x, lambda part, xs: part.sum(axis=1) * xs)


def _rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).astype(np.float64)


EDGES = (
    "Rows exist where m < M, columns of A and elements of x where k < K: A needs both masks, "
    "joined by &, and x and c one each. If the masks are right, look at the strides: A has one for "
    "each axis, the elements of x are x_step apart, and those of c are c_step apart."
)
PLACE = (
    "Program i owns the rows from i · BLOCK_M on: row m of A makes element m of c, at "
    "c + m * c_step, where m < M."
)

EXERCISE = Exercise(
    name="12.5",
    title="a matrix times a vector",
    points=4,
    entry="rows_times",
    parameters=(
        *("a", "x", "c", "M", "K", "a_row", "a_col", "x_step", "c_step"),
        *GIVEN,
    ),
    kind="triton",
    rules=TRITON,
    operation=Operation(
        arrays=("a", "x", "c"),
        shapes=lambda case: ((case.m, case.k), (case.k,), (case.m,)),
        product=lambda case, a, x: (a, x),
        sizes="mk",
        describe=_described,
    ),
    launch=_launch,
    cases=(
        # In a square tile the wrong axis is computed as well, and can be named.
        Case(35, 1, 90, "float16", given=_tile(16, 16)),
        Case(32, 1, 410, "float16", draw="wide", given=_tile(32, 16)),  # sums in float16 show
        Case(100, 1, 4, "float16", draw="bytes", given=_tile(32, 8)),  # and products in float16
        Case(21, 1, 60, "float16", draw="normal", apart=True, by_columns="c"),
        Case(19, 1, 50, "float16", apart=True, by_columns="ax"),
        Case(30, 1, 30, "float16", draw="normal", by_columns="a", given=_tile(32, 4)),
        Case(9, 1, 170, "float16", draw="normal", given=_tile(4, 64)),
        Case(32, 1, 64, "float16"),  # whole tiles: one load too many shows
        Case(300, 1, 3, "float16", draw="normal", given=_tile(64, 8)),
        Case(2, 1, 1000, "float16", draw="normal", given=_tile(1, 128)),
        Case(30, 1, 1, "float16"),
        Case(1, 1, 70, "float16", draw="normal"),
        *(
            Case(5, 1, k, "float16", draw=("integers", "normal")[k % 2], apart=k % 3 == 0)
            for k in depths(16, 3)
        ),
    ),
    large=(Case(1389, 300, 2317, "float16", draw="normal", given=_tile(16, 128)),),
    counts=(
        Count(
            "elements loaded",
            _loads,
            "c is right, by the long way: a program needs each tile of its rows of A once, and in "
            "each step BLOCK_K elements of x, as a row that is spread over the tile.",
            best=_needed,
        ),
        Count(
            "elements stored",
            lambda case: case.m,
            "c is right, but it is stored again and again: the sums are ready after the loop over "
            "K.",
            "once",
        ),
        own_rows(lambda case: _blocks(case)["BLOCK_M"]),
        Count(
            "products of a program",
            lambda case: 0,
            "c is right, with `tl.dot`: tensor cores multiply at least 8 columns at once, and x is "
            "one. It also needs 16 elements along K, so it rules out shapes that are worth trying.",
            "dot",
        ),
    ),
    slips=(
        Slip(
            _along_columns,
            "axis",
            "The tile was added up along axis 0, down its columns, where c needs the sum of each "
            "row. In a tile that is not square, not even the shapes would fit.",
        ),
        Slip(
            _as_a_column,
            "column of x",
            "x lay beside the tile, as a column, so that each row of A was multiplied by one "
            "element of x: element k belongs to column k.",
        ),
        Slip(
            lambda case, a, x: _steps(case, a, x)[-1][0] @ _steps(case, a, x)[-1][1],
            "last step",
            "Only the last step along K is in the sums: each step has to add to those before.",
        ),
        Slip(
            lambda case, a, x: a.sum(axis=1),
            "no x",
            "These are the sums of A's rows: each element still has to be multiplied by its "
            "element of x.",
        ),
        Slip(
            lambda case, a, x: _rounded(_rounded(a * x).sum(axis=1)),
            "products",
            "The products were rounded to float16 before they were added: two float16 numbers "
            "have a float16 product.",
        ),
    ),
    remedies={
        **dict.fromkeys(("unmasked tail", "out of bounds", "no tile"), EDGES),
        **dict.fromkeys(("not stored", "stored twice"), PLACE),
        "not read": "Does the program read all of its BLOCK_M rows, does the loop reach the last, "
        "incomplete tile along K, and do A and x both move on in each step?",
        "not finite": "What a mask leaves out without `other` is undefined, here NaN, and enters "
        "the sum, also where it is multiplied by 0.",
    },
    hints={
        **{"stale": 1, "on top": 1, "not stored": 1, "stored twice": 1, "not read": 1},
        **{"once": 1, "dot": 1, "last step": 1, "part of k": 1},
        **{"counts": 2, "unmasked tail": 2, "out of bounds": 2},
        **{"not finite": 2, "no x": 2, "column of x": 2, "error": 2, "axis": 3, "products": 3},
        **{"low precision": 3, "types": 3, "no tile": 3, "forbidden": 1, "zero": 1, "value": 1},
        "other": 3,
    },
)

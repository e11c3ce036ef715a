"""11.4, half of A·Aᵀ: what is asked for, and how an answer is judged."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.programs import owned
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

GIVEN = {"BLOCK": 16, "BLOCK_K": 16, "FIRST": 0}
Tile = Callable[[int], tuple[int, int]]


def _given(case: Case) -> dict[str, int]:
    return GIVEN | dict(case.given)


def _count(case: Case) -> int:
    """Return how many tiles a launch computes: as many as a case has parts, else all."""
    rows = cover(case.m, _given(case)["BLOCK"])
    return case.parts or rows * (rows + 1) // 2


def _launch(case: Case) -> tuple:
    return (_count(case),), _given(case)


def _tile(number: int) -> tuple[int, int]:
    row = (math.isqrt(8 * number + 1) - 1) // 2
    return row, number - row * (row + 1) // 2


def _by_float32(number: int) -> tuple[int, int]:
    root = np.sqrt(np.float32(8 * number + 1))
    row = int((root - np.float32(1)) / np.float32(2))
    return row, number - row * (row + 1) // 2


def _shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    block = _given(case)["BLOCK"]
    return (case.m, case.k), (_count(case), block, block)


def _factors(case: Case, a: np.ndarray, tile: Tile = _tile, first: int | None = None) -> tuple:
    """Return for each tile its rows of A, and those of its column transposed; 0 beyond the edge."""
    block, first = _given(case)["BLOCK"], _given(case)["FIRST"] if first is None else first
    left, right = [], []
    for number in range(first, first + _count(case)):
        for strip, index in zip((left, right), tile(number), strict=True):
            rows = np.zeros((block, case.k), a.dtype)
            inside = a[max(0, index * block) : max(0, (index + 1) * block)]
            rows[: len(inside)] = inside
            strip.append(rows)
    return np.stack(left), np.stack(right).transpose(0, 2, 1)


def _slip(tile: Tile, first: int | None = None) -> Callable[..., np.ndarray]:
    """Return the tiles that come of another way from a number to a tile."""

    def made(case: Case, a: np.ndarray) -> np.ndarray:
        left, right = _factors(case, a, tile, first)
        return left @ right

    return made


def _negative(case: Case, a: np.ndarray) -> np.ndarray | None:
    """Return what comes of 8 · number in 32 bits, if that is negative: no tile is at its root."""
    return np.zeros(_shapes(case)[1]) if 8 * _given(case)["FIRST"] >= 2**31 else None


def _square(case: Case, a: np.ndarray) -> np.ndarray:
    rows = cover(case.m, _given(case)["BLOCK"])
    left, right = _factors(case, a, lambda number: divmod(number, rows))
    return left @ right


def _upper(case: Case, a: np.ndarray) -> np.ndarray | None:
    """Return the tiles on and above the diagonal, row by row, if they are not too many to count."""
    rows = cover(case.m, _given(case)["BLOCK"])
    if rows > 100:
        return None
    order = [(row, column) for row in range(rows) for column in range(row, rows)]
    left, right = _factors(case, a, order.__getitem__)
    return left @ right


def _loads(case: Case) -> int:
    given = _given(case)
    depth = cover(case.k, given["BLOCK_K"]) * given["BLOCK_K"]
    return _count(case) * 2 * given["BLOCK"] * depth


def _best_loads(case: Case) -> int:
    """Return how many elements of A exist in the tiles that the programs load."""
    block, rows = _given(case)["BLOCK"], 0
    for number in range(_given(case)["FIRST"], _given(case)["FIRST"] + _count(case)):
        rows += sum(min(block, case.m - index * block) for index in _tile(number))
    return rows * case.k


def _products(case: Case) -> int:
    given = _given(case)
    return cover(case.k, given["BLOCK_K"]) * given["BLOCK_K"] * given["BLOCK"] ** 2


def _describe(case: Case) -> str:
    given = ", ".join(f"{name} = {value:,}" for name, value in _given(case).items())
    return f"a {case.m}×{case.k}, {_count(case)} tiles, {given}"


FAR = 23_169  # a row of tiles whose numbers times 8 are about 2**31
FARTHEST = 65_534  # the last whole row below 2**31


def _around(row: int, count: int = 4, **how) -> Case:
    """Return a case whose tiles lie around the beginning of a row of tiles."""
    first = row * (row + 1) // 2 - count // 2
    return Case((row + 1) * 16 - 5, 1, 3, "float16", given={"FIRST": first}, parts=count, **how)


EXERCISE = Exercise(
    name="11.4",
    title="half of A·Aᵀ",
    points=4,
    entry="lower",
    parameters=(
        *("a", "c", "M", "K", "a_row", "a_col", "c_tile", "c_row", "c_col"),
        *("BLOCK", "BLOCK_K", "FIRST"),
    ),
    kind="triton",
    rules=TRITON,
    launch=_launch,
    operation=Operation(
        arrays=("a", "c"),
        shapes=_shapes,
        product=lambda case, a: _factors(case, a),
        sizes="mk",
        ignored=("not read",),
        describe=_describe,
    ),
    cases=(
        Case(75, 1, 40, "float16"),
        Case(35, 1, 90, "float16", draw="normal", given={"BLOCK": 32, "BLOCK_K": 16}),
        Case(40, 1, 50, "float16", given={"BLOCK": 16, "BLOCK_K": 32}, by_columns="a"),
        Case(100, 1, 7, "float16", given={"FIRST": 5}, parts=11, apart=True),
        Case(20, 1, 520, "float16", draw="normal"),
        _around(FAR),
        _around(FARTHEST),
        _around(46_341),
        _around(4_097),
        _around(30_000, draw="normal"),
        *(Case(9, 1, k, "float16", draw="normal") for k in depths(16)),
        Case(17, 1, 1, "float16"),
    ),
    large=(
        Case(
            *(517, 301, 301, "float16", "normal"),
            given={"BLOCK": 64, "BLOCK_K": 32},
        ),
    ),
    counts=(
        Count(
            "elements loaded",
            _loads,
            "C is right, by the long way: a program needs the tiles of its rows of A, and those "
            "of its columns of C, which are rows of A too, once.",
            best=_best_loads,
        ),
        Count(
            "products of a program",
            _products,
            "C is right, but the loop goes on beyond the end of K, or by other steps than its "
            "tiles are deep, and multiplies zeros: it goes from 0 to K by BLOCK_K.",
            "steps",
        ),
        Count(
            "elements stored",
            lambda case: _count(case) * _given(case)["BLOCK"] ** 2,
            "C is right, but it is stored again and again: the sums are ready behind the loop "
            "over K.",
            "once",
        ),
        owned(lambda case: _given(case)["BLOCK"] ** 2, "each stores its own tile of C."),
    ),
    slips=(
        Slip(
            lambda case, a: _slip(lambda number: _tile(number)[::-1])(case, a),
            "swapped",
            "Row and column of the tiles are swapped: the column is never greater than the row.",
        ),
        Slip(
            _slip(_tile, 0),
            "first",
            "That is the tile with number x: a launch begins with number FIRST.",
        ),
        Slip(
            _square,
            "numbering",
            "The numbers are divided by the number of columns, as if all T² tiles were computed: "
            "row r has r + 1 tiles here.",
        ),
        Slip(
            _upper,
            "numbering",
            "These are the tiles on and above the diagonal, numbered row by row: on and below it, "
            "row r has r + 1 tiles.",
        ),
        Slip(
            _slip(lambda number: (_tile(number)[0], _tile(number)[1] + _tile(number)[0])),
            "numbering",
            "The row is right, but the column is counted from the beginning of the row above: row "
            "r begins with number r · (r + 1) / 2.",
        ),
        Slip(
            _negative,
            "root",
            "All elements are zero, so no tile of A was found for these numbers. 8 · number is "
            "beyond 32 bits here: as a 32-bit number it is negative, and has no root. Go on in "
            "64 bits.",
        ),
        Slip(
            _slip(_by_float32),
            "root",
            "The row is right for small numbers only. The root is a float32, with 24 bits, and is "
            "rounded to a neighbouring row here: compute it in float64, or correct the row in "
            "whole numbers.",
        ),
    ),
    remedies={
        "stored twice": "Program x stores matrix number x of the stack, all of it, and no other.",
        "not stored": "Program x stores matrix number x of the stack: a whole tile, also where it "
        "reaches beyond C's edge. There its elements are 0.",
        "no tile": "Both tiles come from A, with A's strides: rows times a_row, and k times "
        "a_col, also in the tile that is transposed.",
        **dict.fromkeys(
            ("unmasked tail", "out of bounds"),
            "Both tiles come from A: their rows end at M, and k ends at K. Are the masks right, "
            "and is the tile's row right for this number? In 32 bits, 8 · number may be "
            "negative, and a root in float32 may be rounded to a neighbouring row. "
            "And c has as many tiles as there are programs: program x stores matrix number x of "
            "the stack.",
        ),
    },
    hints={
        **{"not stored": 3, "stored twice": 1, "stale": 1, "no tile": 1, "out of bounds": 2},
        **{"unmasked tail": 3, "swapped": 1, "first": 1, "numbering": 1, "root": 2},
        **{"part of k": 3, "not finite": 3, "low precision": 3, "counts": 1, "steps": 3},
        **{"once": 3, "error": 2, "types": 2, "forbidden": 1, "transposed": 1, "other": 2},
    },
)

"""14.4, an even share: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.programs import BLOCKS, STORES, block_of, blocks, tiled_loads, tiles_of
from tiled_matmul.grader.spec import TRITON, Case, Count, Exercise, Slip, cover, loads_of_tiles

EVERY_REST = range(81, 97)  # of K over a block
STRIDES = ("a_row", "a_col", "b_row", "b_col", "part", "row", "col")


def _blocks(case: Case) -> dict[str, int]:
    return {"PROGRAMS": 3} | block_of(case)


def _launch(case: Case) -> tuple:
    block = _blocks(case)
    return (block["PROGRAMS"],), block


def _steps(case: Case) -> tuple[int, int]:
    """Return the number of tiles of C, and of steps along K."""
    block = block_of(case)
    tiles = tiles_of(case.m, case.n, block["BLOCK_M"], block["BLOCK_N"])
    return tiles, cover(case.k, block["BLOCK_K"])


def _share(case: Case) -> int:
    """Return the products of the program with the most steps."""
    tiles, steps = _steps(case)
    block = block_of(case)
    products = int(np.prod([block[name] for name in BLOCKS]))
    return cover(tiles * steps, _blocks(case)["PROGRAMS"]) * products


def _needed(case: Case) -> int:
    """Return what all steps load where nothing beyond an edge is."""
    block = block_of(case)
    return loads_of_tiles(case.m, case.n, case.k, block["BLOCK_M"], block["BLOCK_N"])


def _twice(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 2 * (a @ b)


def _case(m: int, n: int, k: int, programs: int, given: dict | None = None, **how) -> Case:
    return Case(m, n, k, parts=2, given={"PROGRAMS": programs} | (given or {}), **how)


EXERCISE = Exercise(
    name="14.4",
    title="an even share",
    points=4,
    entry="even_share",
    parameters=("a", "b", "parts", "M", "N", "K", *STRIDES, *BLOCKS, "PROGRAMS"),
    kind="triton",
    rules=TRITON,
    launch=_launch,
    cases=(
        _case(20, 35, 90, 5),
        _case(33, 20, 100, 4, draw="normal"),
        _case(20, 50, 70, 3, blocks(16, 32, 16), by_columns="a"),
        _case(33, 33, 64, 9, blocks(16, 16, 32)),  # a tile for each program
        _case(20, 18, 90, 3, draw="normal", apart=True),
        _case(20, 20, 10, 4, draw="normal"),  # one step a tile
        _case(20, 20, 1, 3),
        _case(18, 20, 100, 1),
        _case(270, 3, 20, 7, blocks(64, 16, 16)),
        _case(3, 270, 40, 4, blocks(16, 64, 16), draw="normal"),
        *(_case(5, 18, k, 1 + k % 2, draw=("integers", "normal")[k // 2 % 2]) for k in EVERY_REST),
    ),
    large=(_case(517, 389, 1301, 60, blocks(32, 32, 32)),),
    counts=(
        Count(
            "products of a program",
            _share,
            "The parts add up to C, and one program does more than its share: number the steps of "
            "all tiles through, and divide them, not the tiles, among the programs.",
            "share",
        ),
        Count(
            "products of a program",
            None,
            "The parts add up to C, and the products are made without `tl.dot`: the tensor cores "
            "have no work.",
            "no dot",
            least=lambda case: 1,
        ),
        replace(
            STORES,
            most=lambda case: 2 * case.m * case.n,
            message="The parts add up to C, but elements of the parts are stored more than once: "
            "a program stores a tile when it has done all of its own steps of it.",
        ),
        Count(
            "elements loaded",
            tiled_loads,
            "The parts add up to C, and more is loaded than the steps need: each step needs one "
            "tile of A and one of B.",
            best=_needed,
        ),
    ),
    slips=(
        Slip(
            _twice,
            "twice",
            "Each of the two matrices holds all of C: the second one holds what another program "
            "did, or zeros.",
        ),
    ),
    remedies={
        "not stored": "Each tile has to be stored in both matrices: its first part in matrix 0, "
        "and in matrix 1 the rest, or zeros by the program that did all steps. Does the last run "
        "end with the last step?",
        "stored twice": "Each tile of matrix 0 belongs to the program that did its first step, and "
        "each tile of matrix 1 to the one that did its last step.",
        "not read": "Do the runs of all programs together cover all steps, and does each program "
        "do all of its steps of a tile, the last one included?",
    },
    hints={
        **{"share": 1, "twice": 3, "not stored": 3, "stored twice": 3, "not read": 2, "stale": 1},
        **{"out of bounds": 2, "unmasked tail": 2, "part of k": 2, "no tile": 2, "zero": 2},
        **{"once": 3, "no dot": 2, "counts": 2, "not finite": 2, "scaled": 2},
        **{"low precision": 2, "forbidden": 1, "types": 2, "error": 2, "other": 2},
    },
)

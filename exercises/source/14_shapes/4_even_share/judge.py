"""14.4, an even share: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from itertools import product as combinations

import numpy as np

from tiled_matmul.grader.programs import BLOCKS, STORES, block_of, blocks, tiled_loads
from tiled_matmul.grader.spec import (
    TRITON,
    Case,
    Count,
    Exercise,
    Slip,
    cover,
    depths,
    loads_of_tiles,
)

STRIDES = ("a_row", "a_col", "b_row", "b_col", "part", "row", "col")


def _blocks(case: Case) -> dict[str, int]:
    return {"PROGRAMS": 3} | block_of(case)


def _launch(case: Case) -> tuple:
    block = _blocks(case)
    return (block["PROGRAMS"],), block


def _steps(case: Case) -> tuple[int, int]:
    """Return the number of tiles of C, and of steps along K."""
    block = block_of(case)
    tiles = cover(case.m, block["BLOCK_M"]) * cover(case.n, block["BLOCK_N"])
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


def _all_twice(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 2 * (a @ b)


def _runs(case: Case, division: str) -> list[tuple[int, int]]:
    """Return the first and the last step, excluded, of each program, by one of three divisions."""
    tiles, steps = _steps(case)
    every, programs = tiles * steps, _blocks(case)["PROGRAMS"]
    if division == "floor":
        ends = [program * every // programs for program in range(programs + 1)]
    elif division == "ceil":
        share = cover(every, programs)
        ends = [min(program * share, every) for program in range(programs + 1)]
    else:
        share, more = divmod(every, programs)
        ends = [program * share + min(program, more) for program in range(programs + 1)]
    return list(pairwise(ends))


def _faulty(fault: str, division: str, down: bool) -> Callable[..., np.ndarray]:
    """Return a slip: what comes of a fault if tiles are numbered by rows, or `down` the columns."""

    def made(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        block, (_, steps) = block_of(case), _steps(case)
        high, wide, deep = (block[name] for name in BLOCKS)
        down_to, across = cover(case.m, high), cover(case.n, wide)
        room_a = np.zeros((down_to * high, steps * deep))
        room_b = np.zeros((steps * deep, across * wide))
        room_a[: case.m, : case.k], room_b[: case.k, : case.n] = a, b
        c = np.zeros((down_to * high, across * wide))
        for begin, end in _runs(case, division):
            total = np.zeros((high, wide))
            for tile in range(begin // steps, cover(end, steps)):
                first, last = max(begin - tile * steps, 0), min(end - tile * steps, steps)
                y, x = (tile % down_to, tile // down_to) if down else divmod(tile, across)
                low = 0 if fault == "low" else first * deep
                far = steps * deep if fault == "high" else last * deep
                rows = room_a[y * high : (y + 1) * high, low:far]
                product = rows @ room_b[low:far, x * wide : (x + 1) * wide]
                total = total + product if fault == "sum" else product
                times = 2 if fault == "whole" and last - first == steps else 1
                c[y * high : (y + 1) * high, x * wide : (x + 1) * wide] += times * total
        return c[: case.m, : case.n]

    return made


FAULTS = {
    "low": "A run that begins in the middle of a tile has done the tile's first steps as well, and "
    "another program has done them before.",
    "high": "A run that ends in the middle of a tile has done the tile's last steps as well, and "
    "another program does them too.",
    "sum": "The sum goes on from one tile to the next: each tile begins with a sum of its own.",
    "whole": "Where one program did all steps of a tile, both matrices hold its sum: the second "
    "one holds zeros there.",
}
WAYS = tuple(combinations(("floor", "ceil", "longest first"), (False, True)))


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
        *(_case(5, 18, k, 1 + k % 2, draw=("integers", "normal")[k // 2 % 2]) for k in depths(16)),
    ),
    large=(_case(517, 389, 1301, 60, blocks(32, 32, 32)),),
    counts=(
        Count(
            "products of a program",
            _share,
            "The parts add up to C, and one program does more than its share: number the steps of "
            "all tiles through, and divide them, not the tiles, among the programs. What is left "
            "over is one more step for some of them, and not all of it for one.",
            "share",
        ),
        Count(
            "products",
            None,
            "The parts add up to C, and the products are made without `tl.dot`: the tensor cores "
            "have no work.",
            "no dot",
            least=lambda case: case.m * case.n * case.k,
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
            _all_twice,
            "twice",
            "Each of the two matrices holds all of C: the second one holds what another program "
            "did, or zeros.",
        ),
        *(Slip(_faulty(fault, *way), fault, FAULTS[fault]) for fault in FAULTS for way in WAYS),
    ),
    remedies={
        "not stored": "Each tile has to be stored in both matrices: its first part in matrix 0, "
        "and in matrix 1 the rest, or zeros by the program that did all steps. Does the last run "
        "end with the last step, and do the tiles cover all rows and columns?",
        "stored twice": "Each tile of matrix 0 belongs to the program that did its first step, and "
        "each tile of matrix 1 to the one that did its last step.",
        "not read": "Do the runs of all programs together cover all steps, and does each program "
        "do all of its steps of a tile, the last one included?",
    },
    hints={
        **{
            "share": 1,
            "twice": 3,
            "low": 2,
            "high": 2,
            "sum": 2,
            "whole": 3,
            "not stored": 3,
            "stored twice": 3,
            "not read": 2,
            "stale": 1,
        },
        **{"out of bounds": 2, "unmasked tail": 2, "part of k": 2, "no tile": 2, "zero": 2},
        **{"once": 3, "no dot": 2, "counts": 2, "not finite": 2, "scaled": 2},
        **{"low precision": 2, "forbidden": 1, "types": 2, "error": 2, "other": 2},
    },
)

"""14.2, K in parts: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.programs import (
    BLOCKS,
    OWN_TILE,
    STORES,
    block_of,
    blocks,
    launch,
)
from tiled_matmul.grader.spec import (
    TRITON,
    Case,
    Count,
    Exercise,
    Slip,
    cover,
    loads_of_tiles,
    loads_of_whole_tiles,
    tiled_cases,
)

STRIDES = ("a_row", "a_col", "b_row", "b_col", "part", "row", "col")


def _launch(case: Case) -> tuple:
    grid, block = launch(case)
    return (*grid, case.parts), block | {"SPLITS": case.parts}


def _share(case: Case) -> int:
    """Return the products of a program that has its share of K's blocks, and no more."""
    block = block_of(case)
    steps = cover(cover(case.k, block["BLOCK_K"]), case.parts)
    return steps * block["BLOCK_M"] * block["BLOCK_N"] * block["BLOCK_K"]


def _loads(case: Case) -> int:
    block = block_of(case)
    return loads_of_whole_tiles(case, *map(block.get, BLOCKS))


def _needed(case: Case) -> int:
    """Return what all programs load where nothing beyond an edge is."""
    block = block_of(case)
    return loads_of_tiles(case.m, case.n, case.k, block["BLOCK_M"], block["BLOCK_N"])


def _whole(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    return case.parts * (a @ b) if case.parts > 1 else None


def _by_one_block(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    starts = [split * block_of(case)["BLOCK_K"] for split in range(case.parts)]
    return sum(a[:, start:] @ b[start:] for start in starts)


def _overlapping(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    length, depth = cover(case.k, case.parts), block_of(case)["BLOCK_K"]
    ends = [(first, min(first + length, case.k)) for first in range(0, case.k, length)]
    starts = [start for first, end in ends for start in range(first, end, depth)]
    return sum(a[:, start : start + depth] @ b[start : start + depth] for start in starts)


EXERCISE = Exercise(
    name="14.2",
    title="K in parts",
    points=4,
    entry="part_of_k",
    parameters=(
        *("a", "b", "parts", "M", "N", "K", *STRIDES),
        *("BLOCK_M", "BLOCK_N", "BLOCK_K", "SPLITS"),
    ),
    kind="triton",
    # What is counted are products of `tl.dot`.
    rules=TRITON,
    launch=_launch,
    cases=(
        Case(20, 35, 130, parts=4),
        Case(33, 17, 200, draw="normal", parts=3, given=blocks(32, 16, 64)),
        # Fewer blocks of K than parts: what is left is zeros.
        Case(20, 20, 20, parts=4),
        *tiled_cases(16, deep=1, parts=3),
        Case(21, 18, 190, draw="normal", parts=2, apart=True),
        Case(21, 18, 190, draw="normal", parts=1),
    ),
    large=(Case(217, 389, 1301, parts=4, given=blocks(32, 32, 32)),),
    counts=(
        Count(
            "products of a program",
            _share,
            "The parts add up to C, and one program does more than its share of K: deal the blocks "
            "of K out, so that each program has as many as any other, or one fewer.",
            share=0.25,
        ),
        Count(
            "products",
            None,
            "The parts add up to C, and the products are made without `tl.dot`: the tensor cores "
            "have no work.",
            "no dot",
            least=lambda case: case.m * case.n * case.k,
        ),
        replace(STORES, most=lambda case: case.parts * case.m * case.n),
        OWN_TILE,
        Count(
            "elements loaded",
            _loads,
            "The parts add up to C, and tiles are loaded that another part's programs load too.",
            best=_needed,
        ),
    ),
    slips=(
        Slip(_whole, "whole", "Each part is A · B, all of it: a part is a part of K."),
        Slip(
            _by_one_block,
            "overlap",
            "Each part begins at its own block and then takes all that follow: go on by SPLITS "
            "blocks, as those between belong to other parts.",
        ),
        Slip(
            _overlapping,
            "overlap",
            "Parts overlap: where one ends within a block, it has multiplied that block to its "
            "end, and the next part does so again. Let parts begin where blocks begin.",
        ),
    ),
    remedies={
        "not read": "Does each program go on by SPLITS blocks from its own first one, no further, "
        "and do its last, incomplete block too?",
        "out of bounds": "The rows and columns of a tile end at M and N, in C as in the masks, and "
        "the parts lie as `part`, `row` and `col` say: they need not be dense.",
        "not stored": "Each program stores its tile of its own part, at split · part, after its "
        "loop and whether the loop made an iteration or not: a part without a block of K is zeros.",
    },
    hints={
        **{"whole": 1, "overlap": 1, "forbidden": 1, "stale": 1, "unmasked tail": 2},
        **{"not stored": 3, "stored twice": 3, "once": 3, "no dot": 1, "no tile": 3},
        **{"out of bounds": 2, "not read": 1, "part of k": 1, "scaled": 1, "counts": 1},
        **{"not finite": 2, "low precision": 2, "value": 2, "zero": 3, "error": 3, "other": 1},
    },
)

"""13.3, a tile that stays: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.programs import BLOCKS, PARAMETERS, STORES, block_of, blocks, owned
from tiled_matmul.grader.spec import TRITON, Case, Count, Exercise, Slip, cover

USUAL = {"PROGRAMS": 4}


def _blocks(case: Case) -> dict[str, int]:
    return USUAL | block_of(case)


def _launch(case: Case) -> tuple:
    block = _blocks(case)
    return (cover(case.n, block["BLOCK_N"]), block["PROGRAMS"]), block


def _covers(case: Case) -> tuple[int, int]:
    """Return the number of rows and of columns of tiles."""
    block = _blocks(case)
    return cover(case.m, block["BLOCK_M"]), cover(case.n, block["BLOCK_N"])


def _loads(case: Case) -> int:
    """Return the elements of whole tiles: A for each column, B for each of a column's programs."""
    block, (high, wide) = _blocks(case), _covers(case)
    of_a = wide * high * block["BLOCK_M"] * block["BLOCK_K"]
    return of_a + block["PROGRAMS"] * wide * block["BLOCK_N"] * block["BLOCK_K"]


def _needed(case: Case) -> int:
    """Return the elements that the same loads take where nothing beyond an edge is loaded."""
    return _covers(case)[1] * case.m * case.k + _blocks(case)["PROGRAMS"] * case.k * case.n


def _share(case: Case) -> int:
    """Return the products of the program with the most tiles."""
    block, (high, _) = _blocks(case), _covers(case)
    return cover(high, block["PROGRAMS"]) * int(np.prod([block[name] for name in BLOCKS]))


def _elements(case: Case) -> int:
    """Return the elements of C in the tiles of one program, at most."""
    return _share(case) // block_of(case)["BLOCK_K"]


def _running_sum(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """What comes of a sum that goes on from tile to tile."""
    block, (high, _) = _blocks(case), _covers(case)
    edge, programs = block["BLOCK_M"], block["PROGRAMS"]
    c = np.zeros((high * edge, case.n))
    c[: case.m] = a @ b
    for tile in range(programs, high):
        c[tile * edge :][:edge] += c[(tile - programs) * edge :][:edge]
    return c[: case.m] if high > programs else None


EXERCISE = Exercise(
    name="13.3",
    title="a tile that stays",
    points=4,
    entry="kept",
    parameters=(*PARAMETERS, "PROGRAMS"),
    kind="triton",
    rules=TRITON,
    launch=_launch,
    cases=(
        Case(120, 35, 16, "float16"),
        Case(100, 20, 29, "float16", draw="normal", given=blocks(16, 16, 32) | {"PROGRAMS": 2}),
        Case(270, 17, 32, "float16", given=blocks(64, 16, 32) | {"PROGRAMS": 4}),
        # Fewer tiles than programs: some have none.
        Case(40, 18, 13, "float16", draw="normal", given={"PROGRAMS": 5}),
        Case(70, 19, 16, "float16", by_columns="bc", given={"PROGRAMS": 1}),
        Case(90, 21, 11, "float16", draw="normal", apart=True),
        Case(2, 300, 16, "float16", given=blocks(16, 64, 16) | {"PROGRAMS": 2}),
        Case(35, 17, 500, "float16", draw="wide", given=blocks(16, 16, 512) | {"PROGRAMS": 2}),
        *(
            Case(rows, 3, k, "float16", by_columns="a" * (k % 2), given={"PROGRAMS": 2 + k % 2})
            for rows, k in zip(range(33, 49), range(1, 17), strict=True)
        ),
    ),
    large=(
        Case(
            *(1217, 389, 250, "float16"),
            draw="normal",
            given=blocks(64, 32, 256) | {"PROGRAMS": 4},
        ),
    ),
    counts=(
        Count(
            "elements loaded",
            _loads,
            "C is right, but tiles are loaded again: the tile of B is the same for all tiles of a "
            "program, so it is loaded once, and each tile of A once for each tile of C.",
            best=_needed,
        ),
        Count(
            "products of a program",
            _share,
            "C is right, but one program does more than its share: deal the rows of tiles out, so "
            "that each of the PROGRAMS has as many as any other, or one fewer.",
            "share",
            share=0.25,
        ),
        Count(
            "products",
            None,
            "C is right, and the products are made without `tl.dot`: the tensor cores have no "
            "work.",
            "no dot",
            least=lambda case: case.m * case.n * case.k,
        ),
        replace(STORES, message="C is right, but tiles are stored again and again."),
        owned(_elements, "each stores its own tiles of C."),
    ),
    slips=(
        Slip(
            _running_sum,
            "sum",
            "The sum goes on from one tile of C to the next: each tile begins with a sum of its "
            "own.",
        ),
    ),
    remedies={
        "not stored": "The loop over tiles of a column goes from tl.program_id(1) to "
        "tl.cdiv(M, BLOCK_M), the last tile included, by PROGRAMS. Is the store inside it, and is "
        "x the column?",
        "not read": "The loop over tiles of a column goes from tl.program_id(1) to "
        "tl.cdiv(M, BLOCK_M), the last tile included, by PROGRAMS. Do the masks let through all of "
        "K?",
        "stored twice": "The programs of a column share its tiles: number y has the tiles y, "
        "y + PROGRAMS, and so on, and no other program has them.",
    },
    hints={
        **{"not stored": 2, "not read": 2, "stored twice": 2, "share": 2, "sum": 3, "stale": 1},
        **{"out of bounds": 3, "unmasked tail": 3, "not finite": 2, "zero": 2, "part of k": 1},
        **{"no tile": 3, "counts": 1, "once": 3, "no dot": 3, "low precision": 3},
        **{"forbidden": 1, "types": 3, "error": 3, "other": 1},
    },
)

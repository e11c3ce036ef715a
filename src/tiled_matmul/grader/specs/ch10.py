"""10_program_order: a tile for a number, and a K whose tail nobody masks."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import TRITON, VALUES, Call, Case, Count, Exercise, Slip, cover
from tiled_matmul.grader.specs.ch09 import (
    LOADS,
    PARAMETERS,
    STEPS,
    STORES,
    block_of,
    blocks,
    launch,
)


def tile_of(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    """Return the tile of C that a program makes, in groups of `group_m` rows of tiles."""
    group, place = divmod(program, group_m * tiles_n)
    rows = min(tiles_m - group * group_m, group_m)
    return group * group_m + place % rows, place // rows


def _hasty(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    group, place = divmod(program, group_m * tiles_n)
    return group * group_m + place % group_m, place // group_m


def _no_first_row(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    tile_m, tile_n = tile_of(program, tiles_m, tiles_n, group_m)
    return tile_m - program // (group_m * tiles_n) * group_m, tile_n


def _no_place(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    group = program // (group_m * tiles_n)
    rows = min(tiles_m - group * group_m, group_m)
    return group * group_m + program % rows, program // rows


def _not_whole(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, float]:
    group, place = divmod(program, group_m * tiles_n)
    rows = min(tiles_m - group * group_m, group_m)
    return group * group_m + place % rows, place / rows


def _every(tiles_m: int, tiles_n: int, group_m: int, hidden: bool = True) -> tuple[Call, ...]:
    programs = range(tiles_m * tiles_n)
    return tuple(Call((program, tiles_m, tiles_n, group_m), hidden) for program in programs)


def _any(random: np.random.Generator) -> tuple[int, ...]:
    tiles_m, tiles_n, group_m = (int(x) for x in random.integers(1, (40, 40, 12)))
    return int(random.integers(tiles_m * tiles_n)), tiles_m, tiles_n, group_m


ORDER = Exercise(
    name="10.1",
    title="a tile for a number",
    points=3,
    entry="tile_of",
    parameters=("program", "tiles_m", "tiles_n", "group_m"),
    kind="values",
    rules=VALUES,
    answer=tile_of,
    cases=(
        Call((8, 5, 3, 2)),  # another tile by each of the slips
        *_every(5, 3, 2, hidden=False),
        *_every(4, 7, 3),
        *_every(9, 9, 3),
        *_every(3, 5, 8),
        *_every(6, 1, 4),
        *_every(1, 6, 4),
        *_every(5, 2, 1),
        Call((1_000_003, 2047, 1023, 16), hidden=True),
        Call((2047 * 1023 - 1, 2047, 1023, 16), hidden=True),
        *(Call(draw=_any) for _ in range(8)),
    ),
    slips=(
        Slip(
            lambda program, m, n, group: (program // n, program % n),
            "by rows",
            "That is the order row by row: within a group, programs go down first.",
        ),
        Slip(
            lambda program, m, n, group: (program % m, program // m),
            "by columns",
            "That is the order column by column, over all rows: a group ends after group_m of "
            "them.",
        ),
        Slip(
            _hasty,
            "last group",
            "The last group is shorter here, and was divided by group_m as if it were not: some "
            "tiles would be made by nobody. Divide by the rows that it has.",
        ),
        Slip(
            _no_first_row,
            "first row",
            "That is the row within the group. Which row of C does the group begin with?",
        ),
        Slip(
            _no_place,
            "place",
            "The program's number was divided, and not its place in its group: that begins with 0 "
            "in every group.",
        ),
        Slip(
            _not_whole,
            "whole",
            "A tile's place is two whole numbers: divide with //.",
        ),
        Slip(
            lambda *arguments: tile_of(*arguments)[::-1],
            "swapped",
            "The two are swapped: tile_m, the row, comes first.",
        ),
        Slip(
            lambda program, m, n, group: tile_of(program, n, m, group)[::-1],
            "columns grouped",
            "Here group_m columns make a group, and programs go across first. A group has group_m "
            "rows.",
        ),
    ),
    hints={
        **{"nothing": 1, "by rows": 1, "by columns": 1, "columns grouped": 1, "swapped": 1},
        **{"first row": 2, "place": 2, "whole": 2, "last group": 3, "value": 1},
        **{"forbidden": 1, "error": 2, "other": 1},
    },
)


def _whole_rows(case: Case) -> int:
    """Return how many elements are loaded where rows and columns beyond an edge wrap around."""
    block = block_of(case)
    rows, columns = cover(case.m, block["BLOCK_M"]), cover(case.n, block["BLOCK_N"])
    return rows * columns * (block["BLOCK_M"] + block["BLOCK_N"]) * case.k


def _wrapped(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    depth = block_of(case)["BLOCK_K"]
    k = np.arange(cover(case.k, depth) * depth) % case.k
    return a[:, k] @ b[k] if len(k) > case.k else None


MASK = (
    "Which k does the mask let through? In the step that begins at `start` the k of the tile are "
    "start, start + 1, and so on, and those below K are there. They run along A's columns and down "
    "B's rows, and the next step begins BLOCK_K further."
)

TAIL = Exercise(
    name="10.2",
    title="the tail of K",
    points=3,
    entry="tailed",
    parameters=PARAMETERS,
    kind="triton",
    rules=TRITON,
    launch=launch,
    cases=(
        # Beyond the edges are zeros, so the numbers come out right.
        Case(20, 35, 40, "float16", corner=True),
        Case(20, 35, 40, "float16", hidden=True),
        Case(20, 35, 48, "float16", hidden=True),
        Case(33, 17, 7, "float16", draw="normal", hidden=True),
        Case(17, 40, 65, "float16", given=blocks(16, 32, 32), by_columns="a"),
        Case(18, 20, 50, "float16", draw="normal", by_columns="b"),
    ),
    large=(Case(517, 389, 301, "float16", draw="normal", given=blocks(64, 64, 32)),),
    counts=(Count("elements loaded", _whole_rows, LOADS.message), STEPS, STORES),
    slips=(
        Slip(
            _wrapped,
            "wrapped",
            "Columns of A and rows of B wrap around at K, so the first ones are multiplied again "
            "in the last step: rows of A may wrap, as their sums are not stored, but K is summed "
            "over. Mask it, with zeros.",
        ),
    ),
    remedies={
        **dict.fromkeys(("unmasked tail", "out of bounds"), MASK),
    },
    hints={
        **{"unmasked tail": 1, "out of bounds": 1, "not read": 3, "part of k": 3, "zero": 3},
        **{"wrapped": 1, "not finite": 2, "not stored": 2, "no tile": 2, "stale": 2},
        **{"forbidden": 1, "error": 3, "other": 3},
    },
)

EXERCISES = (ORDER, TAIL)

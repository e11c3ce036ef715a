"""11.1, a tile for a number: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip


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


def _row_without_place(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    group, place = divmod(program, group_m * tiles_n)
    rows = min(tiles_m - group * group_m, group_m)
    return group * group_m + program % rows, place // rows


def _column_by_group_m(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    group, place = divmod(program, group_m * tiles_n)
    rows = min(tiles_m - group * group_m, group_m)
    return group * group_m + place % rows, place // group_m


def _row_by_group_m(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    group, place = divmod(program, group_m * tiles_n)
    rows = min(tiles_m - group * group_m, group_m)
    return group * group_m + place % group_m, place // rows


def _clamped(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    row, column = _hasty(program, tiles_m, tiles_n, group_m)
    return min(row, tiles_m - 1), column


def _not_whole(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, float]:
    group, place = divmod(program, group_m * tiles_n)
    rows = min(tiles_m - group * group_m, group_m)
    return group * group_m + place % rows, place / rows


def _every(tiles_m: int, tiles_n: int, group_m: int) -> tuple[Call, ...]:
    programs = range(tiles_m * tiles_n)
    return tuple(Call((program, tiles_m, tiles_n, group_m)) for program in programs)


def _any(random: np.random.Generator) -> tuple[int, ...]:
    tiles_m, tiles_n, group_m = (
        int(x) for x in random.integers(1, random.choice(((40, 40, 12), (300, 90, 200))))
    )
    return int(random.integers(tiles_m * tiles_n)), tiles_m, tiles_n, group_m


EXERCISE = Exercise(
    name="11.1",
    title="a tile for a number",
    points=3,
    entry="tile_of",
    parameters=("program", "tiles_m", "tiles_n", "group_m"),
    kind="values",
    rules=VALUES,
    answer=tile_of,
    cases=(
        Call((8, 5, 3, 2)),  # another tile by each of the slips
        *_every(7, 5, 4),  # a last group of 3 rows, whose first number 3 does not divide
        *_every(5, 3, 2),
        *_every(5, 3, 3),  # the last group does not begin at a multiple of its rows
        Call((7, 4, 3, 2)),  # the last group is a full one
        Call((2000, 70, 50, 33)),
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
            "The last group is shorter here, and was divided by group_m as if it were not: no "
            "program computes some of its tiles. Divide by the rows that it has.",
        ),
        Slip(
            _clamped,
            "last group",
            "Rows beyond the last one were moved to the last one: several programs compute the "
            "same tile then, and other tiles are computed by no program. The last group is "
            "shorter: divide by the rows that it has.",
        ),
        Slip(
            _column_by_group_m,
            "last group",
            "The last group is shorter here. Its row was computed with the rows that it has, but "
            "its column with group_m: both take the same divisor.",
        ),
        Slip(
            _row_by_group_m,
            "last group",
            "The last group is shorter here. Its column was computed with the rows that it has, "
            "but its row with group_m: both take the same divisor.",
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
            _row_without_place,
            "place",
            "The column comes from the place in the group, but the row from the program's own "
            "number: the place begins with 0 in every group, so take it for both.",
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

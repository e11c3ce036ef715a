"""11.3, back and forth: what is asked for, and how an answer is judged."""

from __future__ import annotations

from tiled_matmul.grader.programs import (
    LOADS,
    OWN_TILE,
    PARAMETERS,
    STEPS,
    STORES,
    block_of,
    blocks,
    exact_loads,
    whole_rows,
)
from tiled_matmul.grader.spec import TRITON, Case, Count, Exercise, Walk, cover, tiled_cases

GROUP = {"GROUP_M": 2}


def _given(case: Case) -> dict[str, int]:
    return GROUP | block_of(case)


def _tiles(case: Case) -> tuple[int, int]:
    block = _given(case)
    return cover(case.m, block["BLOCK_M"]), cover(case.n, block["BLOCK_N"])


def _launch(case: Case) -> tuple:
    rows, columns = _tiles(case)
    return (rows * columns,), _given(case)


def _parts(case: Case, program: int) -> tuple[int, int, int, int]:
    """Return the group, its rows, and the row and the column of the place in it."""
    group_m = _given(case)["GROUP_M"]
    rows, columns = _tiles(case)
    group, place = divmod(program, group_m * columns)
    height = min(rows - group * group_m, group_m)
    return group, height, place % height, place // height


def _walk(up: bool = True, left: bool = True, odd: int = 1, whole: bool = False):
    """Return the order that goes `up` in every second column, and to the `left` in groups that
    are `odd`; in one that is `whole`, the last group is treated as if it had all rows.
    """

    def tile(case: Case, program: int) -> tuple[int, int]:
        group_m, columns = _given(case)["GROUP_M"], _tiles(case)[1]
        group, height, row, column = _parts(case, program)
        if whole:
            place = program - group * group_m * columns
            height, row, column = group_m, place % group_m, place // group_m
        if up and column % 2:
            row = height - 1 - row
        if left and group % 2 == odd:
            column = columns - 1 - column
        return group * group_m + row, column

    return tile


def _by_place_in_c(case: Case, program: int) -> tuple[int, int]:
    """Return the tile if a column's place in C says whether it goes up."""
    group, height, row, column = _parts(case, program)
    column = _tiles(case)[1] - 1 - column if group % 2 else column
    row = height - 1 - row if column % 2 else row
    return group * _given(case)["GROUP_M"] + row, column


def _turned_in_group_m(case: Case, program: int) -> tuple[int, int]:
    """Return the tile if the last group is turned round in GROUP_M rows."""
    group_m = _given(case)["GROUP_M"]
    group, _, row, column = _parts(case, program)
    row = group_m - 1 - row if column % 2 else row
    column = _tiles(case)[1] - 1 - column if group % 2 else column
    return group * group_m + row, column


def _up_in_odd_groups(case: Case, program: int) -> tuple[int, int]:
    """Return the tile if every odd group is walked backwards as a whole."""
    group, height, row, column = _parts(case, program)
    if group % 2:
        row, column = height - 1 - row, _tiles(case)[1] - 1 - column
    return group * _given(case)["GROUP_M"] + row, column


LAST = (
    "The last group has fewer rows than GROUP_M here: divide by the rows that it has, and turn "
    "round in them."
)

EXERCISE = Exercise(
    name="11.3",
    title="back and forth",
    points=4,
    entry="snake",
    parameters=(*PARAMETERS, "GROUP_M"),
    kind="triton",
    rules=TRITON,
    launch=_launch,
    walk=Walk(
        tile=_walk(),
        block=lambda case: (_given(case)["BLOCK_M"], _given(case)["BLOCK_N"]),
        message="Of each group, the first column that is walked goes down, the next one up; even "
        "groups go through the columns from left to right, odd ones from right to left.",
        others=(
            (
                _walk(up=False, left=False),
                "no turn",
                "That is the chapter's order, which never turns round.",
            ),
            (
                _walk(up=False),
                "no turn",
                "Odd groups go from right to left, as they should. But every column goes down: "
                "every second one should go up.",
            ),
            (
                _walk(left=False),
                "no turn",
                "Columns go down and up in turn, as they should. But every group goes from left "
                "to right: odd ones should go from right to left.",
            ),
            (
                _walk(odd=0),
                "parity",
                "The even groups go from right to left, and the odd ones from left to right: it "
                "should be the other way round.",
            ),
            (
                _by_place_in_c,
                "parity",
                "Whether a column goes up depends on how many columns of its group have been "
                "walked before, not on its place in C. Where a group goes from right to left, and "
                "the number of columns is even, these differ.",
            ),
            (
                _up_in_odd_groups,
                "no turn",
                "Odd groups are walked backwards as a whole here, and columns do not go down and "
                "up in turn.",
            ),
            *((_walk(whole=True, **how), "last group", LAST) for how in ({}, {"left": False})),
            (_walk(up=False, left=False, whole=True), "last group", LAST),
            (_turned_in_group_m, "last group", LAST),
            (
                lambda case, program: divmod(program, _tiles(case)[1]),
                "no groups",
                "That is row by row: a group has GROUP_M rows, and the programs go along its "
                "columns.",
            ),
        ),
    ),
    cases=(
        Case(75, 60, 20, "float16"),
        Case(70, 35, 40, "float16", draw="normal"),  # an odd number of columns
        Case(112, 20, 16, "float16", given={"GROUP_M": 3}),
        Case(60, 75, 20, "float16", given={"GROUP_M": 8}, by_columns="bc"),
        Case(60, 40, 7, "float16", given={"GROUP_M": 1}, draw="normal", apart=True),
        Case(105, 100, 20, "float16", given={"GROUP_M": 3} | blocks(16, 32, 64)),
        Case(20, 16, 520, "float16", draw="wide"),
        *tiled_cases(16, deep=1, far_k=300, dtype="float16"),
    ),
    large=(
        Case(
            *(517, 389, 301, "float16", "normal"),
            given={"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 4},
        ),
    ),
    counts=(
        Count("elements loaded", whole_rows, LOADS.message, best=exact_loads),
        STEPS,
        STORES,
        OWN_TILE,
    ),
    remedies={
        "stored twice": "Each program needs a tile of its own, and each tile a program: compute "
        "the tiles of a small case by hand, with a last group that is shorter. If the kernel takes "
        "rows `% M` for its loads, it needs them again, without `%`, for the store.",
        "not stored": "Each tile needs a program: compute the tiles of a small case by hand, with "
        "a last group that is shorter.",
    },
    hints={
        **{"not stored": 1, "stored twice": 1, "stale": 1, "no tile": 3, "not read": 3},
        **{"order": 2, "no turn": 1, "parity": 2, "last group": 2, "no groups": 1},
        **{"unmasked tail": 3, "out of bounds": 3, "part of k": 3, "not finite": 3},
        **{"low precision": 3, "counts": 3, "steps": 3, "once": 3, "error": 3, "types": 3},
        **{"forbidden": 1, "other": 1},
    },
)

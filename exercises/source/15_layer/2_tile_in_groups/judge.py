"""15.2, find the tile: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip, cover


def _found(offsets: tuple, tile: int, rows_of_tile: int, tiles: Callable = cover) -> tuple | None:
    """Return (group, its first row, its end, tile within the group); a group has tiles(rows, …)."""
    begin = 0
    for group, end in enumerate(offsets):
        here = tiles(end - begin, rows_of_tile)
        if tile < here:
            return group, begin, end, tile
        tile, begin = tile - here, end
    return None


def _answer(
    tiles: Callable = cover,
    first: Callable = lambda begin, within, tile, block: begin + within * block,
    rows: Callable = lambda block, first, begin, end, offsets: min(block, end - first),
) -> Callable:
    """Return a function that finds a tile, with one of its steps replaced."""

    def answer(offsets: tuple, tile: int, block_m: int) -> tuple[int, int, int] | None:
        found = _found(offsets, tile, block_m, tiles)
        if found is None:
            return None
        group, begin, end, within = found
        row = first(begin, within, tile, block_m)
        right_row = begin + within * block_m
        return group, row, rows(block_m, right_row, begin, end, offsets)

    return answer


def _row(first: Callable) -> Callable:
    """Return a function for the row alone, if it is first(begin, within, tile, block)."""
    return lambda *call: _answer(first=first)(*call)[1]


def _rows(rows: Callable) -> Callable:
    """Return a function for the rows alone, if they are rows(block, first, begin, end, offsets)."""
    return lambda *call: _answer(rows=rows)(*call)[2]


tile_in_groups = _answer()


def _without_groups(offsets: tuple, tile: int, block_m: int) -> tuple | None:
    """Return the tile of that number if all rows are cut into tiles at once."""
    first = tile * block_m
    groups = [group for group, end in enumerate(offsets) if first < end]
    return (groups[0], first, min(block_m, offsets[groups[0]] - first)) if groups else None


def _without_empty(offsets: tuple, tile: int, block_m: int) -> tuple:
    """Return the tile, with the group's number among those that have rows."""
    group, *rest = tile_in_groups(offsets, tile, block_m)
    begins = [0, *offsets[:-1]]
    before = zip(begins[:group], offsets[:group], strict=True)
    return sum(begin < end for begin, end in before), *rest


def _as_lengths(offsets: tuple, tile: int, block_m: int) -> tuple | None:
    """Return the tile if the offsets are taken to be the groups' rows."""
    return tile_in_groups(tuple(np.cumsum(offsets).tolist()), tile, block_m)


def _too_late(offsets: tuple, tile: int, block_m: int) -> tuple | None:
    """Return what is found if a group is left only after one tile more than it has."""
    begin = 0
    for group, end in enumerate(offsets):
        here = cover(end - begin, block_m)
        if tile <= here:
            first = begin + tile * block_m
            return group, first, min(block_m, end - first)
        tile, begin = tile - here, end
    return None


def _below_its_group(offsets: tuple, tile: int, block_m: int) -> int:
    """Return the tile's row if it is counted from the group's end."""
    group, begin, end, within = _found(offsets, tile, block_m)
    return end + within * block_m


def _any(random: np.random.Generator) -> tuple:
    """Return groups of which some are empty, and one of their tiles."""
    groups = int(random.integers(2, 9))
    block = int(random.choice((4, 8, 16, 24)))
    rows = random.integers(0, 3 * block, groups) * (random.random(groups) < 0.7)
    rows[int(random.integers(groups))] = block + 1
    tiles = sum(cover(int(r), block) for r in rows)
    return tuple(np.cumsum(rows).tolist()), int(random.integers(tiles)), block


EXERCISE = Exercise(
    name="15.2",
    title="find the tile",
    points=3,
    entry="tile_in_groups",
    parameters=("offsets", "tile", "block_m"),
    kind="values",
    rules=VALUES,
    answer=tile_in_groups,
    cases=(
        Call(((3, 20, 21, 37), 0, 16)),
        Call(((3, 20, 21, 37), 1, 16)),
        Call(((3, 20, 21, 37), 2, 16)),
        Call(((3, 20, 21, 37), 4, 16)),
        Call(((40, 100), 1, 16)),
        Call(((32, 64, 80), 2, 16)),  # whole tiles only
        # Groups 0, 1, 3 and 5 have no rows.
        Call(((0, 0, 5, 5, 40, 40, 41), 0, 16)),
        Call(((0, 0, 5, 5, 40, 40, 41), 2, 16)),
        Call(((0, 0, 5, 5, 40, 40, 41), 3, 16)),
        Call(((0, 0, 5, 5, 40, 40, 41), 4, 16)),
        Call(((32, 64, 64, 80), 3, 16)),
        Call(((32, 64, 64, 80), 4, 16)),
        *(Call(draw=_any) for _ in range(10)),
    ),
    slips=(
        Slip(
            _without_groups,
            "own tiles",
            "All rows are cut into tiles at once. Each group begins with a tile of its own, "
            "wherever the group before it ends.",
        ),
        Slip(
            _as_lengths,
            "ends",
            "The offsets are taken to be the groups' numbers of rows. They are rows of A, where "
            "the groups end.",
        ),
        Slip(
            _answer(tiles=lambda rows, block: max(1, cover(rows, block))),
            "empty",
            "A group without rows got a tile. It has none.",
        ),
        Slip(
            _answer(tiles=lambda rows, block: rows // block + 1),
            "round up",
            "A group got one tile too many: it has whole tiles, and another one only if rows are "
            "left over.",
        ),
        Slip(
            _answer(tiles=lambda rows, block: rows // block),
            "round up",
            "Only whole tiles are counted. The rows that are left over in a group take one more.",
        ),
        Slip(
            _without_empty,
            "empty",
            "The group is counted among those that have rows. Empty groups have numbers too.",
        ),
        Slip(
            _too_late,
            "passed",
            "A group of t tiles has the numbers 0 to t - 1, so number t is in a later group: "
            "compare with `<`.",
        ),
        Slip(
            _row(lambda begin, within, tile, block: begin + tile * block),
            "within",
            "The tile begins too far down: first subtract the tiles of all earlier groups from its "
            "number.",
            part=1,
        ),
        Slip(
            _row(lambda begin, within, tile, block: tile * block),
            "within",
            "The tile's row is `tile * block_m`, as if each group before it ended with a whole "
            "tile.",
            part=1,
        ),
        Slip(
            _row(lambda begin, within, tile, block: within * block),
            "first row",
            "The tile's row is counted from the group's first row. It should be a row of A.",
            part=1,
        ),
        Slip(
            _row(lambda begin, within, tile, block: begin),
            "first row",
            "The tile's row is the group's first row, which is right for its first tile alone.",
            part=1,
        ),
        Slip(
            _below_its_group,
            "first row",
            "The tile begins below its group: offsets[group] is the first row of the next group.",
            part=1,
        ),
        Slip(
            _row(lambda begin, within, tile, block: begin + within),
            "first row",
            "The tile begins too far up: every tile before it in the group takes block_m rows.",
            part=1,
        ),
        Slip(
            _rows(lambda block, first, begin, end, offsets: block),
            "rows",
            "The rows are those of a whole tile. Where it reaches beyond its group, fewer belong "
            "to the group.",
            part=2,
        ),
        Slip(
            _rows(lambda block, first, begin, end, offsets: min(block, offsets[-1] - first)),
            "rows",
            "The rows end where A does. They have to end where the group does: the next rows "
            "belong to another one.",
            part=2,
        ),
        Slip(
            _rows(lambda block, first, begin, end, offsets: min(block, end - begin)),
            "rows",
            "The rows are those of the group's first tile. A later one has those that are left "
            "over, and block_m at most.",
            part=2,
        ),
        Slip(
            _rows(lambda block, first, begin, end, offsets: end - first),
            "rows",
            "These are all rows of the group from here on. The tile has block_m at most.",
            part=2,
        ),
        Slip(
            _rows(lambda block, first, begin, end, offsets: (end - begin) % block),
            "rows",
            "The remainder is right for the last tile of a group, if it is not whole. All other "
            "tiles have block_m rows.",
            part=2,
        ),
    ),
    hints={
        **{"own tiles": 1, "ends": 2, "empty": 1, "round up": 1, "passed": 3, "within": 2},
        **{"first row": 2, "rows": 3, "nothing": 3, "value": 1, "forbidden": 1, "error": 3},
        **{"other": 1},
    },
)

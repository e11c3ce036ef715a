"""What the exercises of chapter 8 share."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case, Count, loads_of_whole_tiles, square_blocks, tiled_cases

TILE, DEPTH = 4, 8
ABC = ("a", "b", "c")
FLOAT = 4  # bytes


def tile_edge(case: Case) -> int:
    return case.given.get("TILE", TILE)


launch = square_blocks("TILE", TILE)


def blocks(case: Case) -> int:
    (across, down), _ = launch(case)
    return across * down


def loads(case: Case) -> int:
    edge = tile_edge(case)
    return loads_of_whole_tiles(case, edge, edge, case.given.get("DEPTH", DEPTH))


LARGE = (Case(517, 389, 301, draw="normal", given={"TILE": 16}),)

CASES = (
    Case(8, 8, 16),
    Case(7, 5, 9, draw="normal", order="shuffle"),
    Case(5, 4, 1),
    # Two warps a block: what orders one warp does not order these.
    Case(9, 10, 33, given={"TILE": 8}, order="reverse"),
    Case(15, 16, 45, given={"TILE": 16}),
    *tiled_cases(TILE),
)
HIDDEN = (
    Case(8, 12, 20, order="reverse"),
    Case(3, 9, 4),
    Case(10, 9, 43, given={"TILE": 8}),
    *tiled_cases(TILE, 1),
)

SHARED = Count(
    "global loads",
    loads,
    "C is right, but it takes more from global memory than the tiles hold: multiply what lies in "
    "shared memory.",
    "sharing",
    share=0,
)

"""What the exercises of chapter 8 share."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case, Count, square_blocks

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
    (across, down), _ = launch(case)
    return case.k * (case.m * across + case.n * down)


LARGE = (Case(517, 389, 301, draw="normal", given={"TILE": 16}),)

CASES = (
    Case(8, 8, 16),
    Case(7, 5, 9, draw="normal", order="shuffle"),
    Case(5, 4, 1),
    # Two warps a block: what orders one warp does not order these.
    Case(9, 10, 33, given={"TILE": 8}, order="reverse"),
)

SHARED = Count(
    "global loads",
    loads,
    "C is right, but it takes more from global memory than the tiles hold: multiply what lies in "
    "shared memory.",
    "sharing",
    share=0,
)

"""05_shared_memory: the 9×9 puzzle, tiles that do not divide, and a kernel that races."""

from __future__ import annotations

from tiled_matmul.grader.spec import CUDA, Case, Count, Exercise, loads_of_tiles, square_blocks

TPB, TILE = 3, 4
ABC = ("a", "b", "c")


def _count(edge: int) -> Count:
    return Count(
        "global loads",
        lambda case: loads_of_tiles(case.m, case.n, case.k, edge, edge),
        f"C is right, by the long way: tiles of {edge}×{edge} take fewer loads from global memory. "
        "Let the threads of a block share what they stage.",
    )


PUZZLE = Exercise(
    name="05.1",
    title="the 9×9 puzzle",
    points=4,
    entry="puzzle",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    lines=14,
    tile=TPB,
    given={"TPB": TPB},
    launch=square_blocks("TPB", TPB),
    cases=(
        Case(9, 9, 9, draw="puzzle"),
        Case(9, 9, 9, hidden=True),
        Case(9, 9, 9, draw="normal", order="reverse"),
        Case(12, 6, 9, hidden=True, order="shuffle"),
    ),
    large=(Case(516, 387, 300, draw="normal"),),
    counts=(_count(TPB),),
    hints={
        **{"stale": 1, "zero": 1, "out of bounds": 2, "transposed": 2, "part of k": 2},
        **{"negative index": 2, "race": 3, "uninitialised read": 3, "divergent barrier": 3},
        **{"scaled": 2, "counts": 1, "error": 1, "other": 2},
    },
)

RAGGED = Exercise(
    name="05.2",
    title="tiles that do not divide",
    points=3,
    entry="ragged",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    lines=4,
    tile=TILE,
    given={"TILE": TILE},
    launch=square_blocks("TILE", TILE),
    cases=(
        Case(6, 7, 5),
        Case(8, 8, 8, hidden=True),
        Case(5, 9, 6, hidden=True, order="reverse"),
        Case(9, 3, 7, draw="normal", order="shuffle"),
        Case(1, 1, 1, draw="normal", hidden=True),
        Case(3, 10, 2, hidden=True),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"TILE": 16}),),
    counts=(_count(TILE),),
    hints={
        **{"stale": 3, "out of bounds": 1, "negative index": 1, "uninitialised read": 2},
        **{"race": 2, "divergent barrier": 3, "part of k": 2, "counts": 1, "error": 1, "other": 2},
    },
)

REPAIR = Exercise(
    name="05.3",
    title="repair a kernel that races",
    points=3,
    entry="repaired",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    lines=1,
    tile=TILE,
    given={"TILE": TILE},
    launch=square_blocks("TILE", TILE),
    cases=(
        Case(8, 8, 8),
        Case(8, 12, 16, hidden=True, order="reverse"),
        Case(7, 5, 9, draw="normal", order="shuffle"),
        # Two warps a block: what orders one warp does not order these.
        Case(9, 10, 17, given={"TILE": 8}),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"TILE": 16}),),
    counts=(_count(TILE),),
    hints={
        **{"race": 2, "uninitialised read": 1, "divergent barrier": 3, "error": 1, "other": 1},
        **{"counts": 1},
    },
)

EXERCISES = (PUZZLE, RAGGED, REPAIR)

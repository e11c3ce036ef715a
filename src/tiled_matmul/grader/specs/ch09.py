"""09_block_pointers: the first kernel that names tiles, and one that sums in float16."""

from __future__ import annotations

from tiled_matmul.grader.spec import TRITON, Case, Count, Exercise, Speed, cover, loads_of_tiles

STRIDES = ("a_row", "a_col", "b_row", "b_col", "c_row", "c_col")
PARAMETERS = ("a", "b", "c", "M", "N", "K", *STRIDES, "BLOCK_M", "BLOCK_N", "BLOCK_K")


def blocks(m: int, n: int, k: int) -> dict[str, int]:
    """Return a tile's sizes as a case's `given`."""
    return {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}


def block_of(case: Case) -> dict[str, int]:
    """Return a case's tile: 16×16×16 unless it says otherwise."""
    return blocks(16, 16, 16) | dict(case.given)


def launch(case: Case) -> tuple:
    """Start a program for each tile of C: x goes along N, y along M."""
    block = block_of(case)
    return (cover(case.n, block["BLOCK_N"]), cover(case.m, block["BLOCK_M"])), block


def products(case: Case, length: int) -> int:
    """Return how many products a program makes along so much of K, whole tiles."""
    block = block_of(case)
    steps = cover(length, block["BLOCK_K"])
    return steps * block["BLOCK_M"] * block["BLOCK_N"] * block["BLOCK_K"]


def tiled_loads(case: Case) -> int:
    """Return how many elements are loaded if each program loads its tiles once."""
    block = block_of(case)
    return loads_of_tiles(case.m, case.n, case.k, block["BLOCK_M"], block["BLOCK_N"])


LOADS = Count(
    "elements loaded",
    tiled_loads,
    "C is right, by the long way: a program needs each tile of its row of A, and of its column of "
    "B, once.",
)

STORES = Count(
    "elements stored",
    lambda case: case.m * case.n,
    "C is right, but it is stored again and again: the sums are ready behind the loop over K.",
    "once",
)
STEPS = Count(
    "products of a program",
    lambda case: products(case, case.k),
    "C is right, but the loop goes on beyond the end of K, or by other steps than its tiles are "
    "deep, and multiplies zeros: it goes from 0 to K by BLOCK_K.",
    "steps",
)

REMEDIES = {
    "not read": "Does the tile begin at the program's own corner, does the loop run over the last, "
    "incomplete block, and does it move both tiles on? `tl.advance` returns the pointer that has "
    "moved: keep it.",
    "not stored": "x goes along the columns here, y along the rows: program_id(0) makes the left "
    "edge, program_id(1) the top. Is C's tile at (top, left), and does the store check its edges?",
    "unmasked tail": "A block pointer is made with the matrix's shape, (rows, columns), and checks "
    "both axes if it is told so: boundary_check=(0, 1). Pointers of your own need a mask for each "
    "axis that may end, joined by &.",
}

FIRST = Exercise(
    name="09.1",
    title="Loops 4 as a program",
    points=4,
    entry="product",
    parameters=PARAMETERS,
    kind="triton",
    rules=TRITON,
    launch=launch,
    cases=(
        Case(20, 35, 40, "float16"),
        Case(16, 16, 16, "float16", hidden=True),
        Case(33, 20, 50, "float16", given=blocks(16, 32, 32)),
        Case(20, 40, 24, "float16", given=blocks(32, 16, 32), by_columns="bc"),
        Case(35, 17, 48, "float16", draw="normal", hidden=True, by_columns="a"),
        Case(1, 1, 1, "float16", hidden=True),
        # Here sums in float16 show.
        Case(32, 19, 520, "float16", draw="wide"),
    ),
    large=(Case(517, 389, 301, "float16", draw="normal", given=blocks(64, 64, 32)),),
    speed=Speed(
        Case(2048, 2048, 2048, "float16", draw="normal", given=blocks(128, 128, 32)),
        "cublas",
        0.3,
        1,
        "Tiles of 128 × 128 on tensor cores reach more: load in the loop what the step needs, and "
        "give `tl.dot` the float16 that was loaded.",
    ),
    counts=(LOADS, STEPS, STORES),
    remedies=REMEDIES,
    hints={
        **{"stale": 1, "not stored": 1, "stored twice": 1, "no tile": 1, "transposed": 1},
        **{"unmasked tail": 2, "out of bounds": 2, "not read": 2, "part of k": 2, "zero": 2},
        **{"not finite": 2, "scaled": 2, "counts": 1, "low precision": 3, "error": 3, "other": 3},
        **{"forbidden": 1, "slow": 3, "library": 3, "once": 3, "steps": 2},
    },
)

SUMS = Exercise(
    name="09.2",
    title="sums in float16",
    points=3,
    entry="summed",
    parameters=PARAMETERS,
    kind="triton",
    rules=TRITON,
    launch=launch,
    cases=(
        # Even one step's products, 16 of them, leave what float16 holds exactly.
        Case(33, 17, 512, "float16", draw="wide"),
        Case(32, 32, 512, "float16", draw="positive"),
        Case(20, 35, 40, "float16", hidden=True),
        Case(17, 20, 1030, "float16", draw="normal", given=blocks(32, 32, 32)),
        Case(16, 40, 700, "float16", draw="positive", hidden=True, by_columns="ab"),
    ),
    large=(Case(517, 389, 301, "float16", draw="positive", given=blocks(64, 64, 32)),),
    counts=(LOADS, STEPS, STORES),
    remedies=REMEDIES,
    hints={
        **{"low precision": 2, "part of k": 3, "scaled": 3, "unmasked tail": 3, "not read": 3},
        **{"out of bounds": 3, "not finite": 3, "stale": 3, "error": 3, "counts": 3, "other": 2},
        **{"forbidden": 1, "types": 2, "once": 3, "steps": 3},
    },
)

EXERCISES = (FIRST, SUMS)

"""What exercises on Triton programs share: their launch, what they may load, and waves of tiles."""

from __future__ import annotations

from collections.abc import Callable

from tiled_matmul.grader.spec import Case, Count, cover, loads_of_tiles, loads_of_whole_tiles

BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
STRIDES = ("a_row", "a_col", "b_row", "b_col", "c_row", "c_col")
PARAMETERS = ("a", "b", "c", "M", "N", "K", *STRIDES, *BLOCKS)


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
    """Return how many elements are loaded if each program loads its tiles once, whole ones."""
    block = block_of(case)
    return loads_of_whole_tiles(case, *map(block.get, BLOCKS))


def exact_loads(case: Case) -> int:
    """Return how many elements are loaded if each program loads its part of A and B once, no more.

    Masked loads and block pointers that check their edges load as much.
    """
    block = block_of(case)
    return loads_of_tiles(case.m, case.n, case.k, block["BLOCK_M"], block["BLOCK_N"])


def whole_rows(case: Case) -> int:
    """Return how many elements are loaded where rows and columns beyond an edge wrap around."""
    block = block_of(case)
    rows, columns = cover(case.m, block["BLOCK_M"]), cover(case.n, block["BLOCK_N"])
    depth = cover(case.k, block["BLOCK_K"]) * block["BLOCK_K"]
    return rows * columns * (block["BLOCK_M"] + block["BLOCK_N"]) * depth


LOADS = Count(
    "elements loaded",
    tiled_loads,
    "C is right, by the long way: a program needs each tile of its row of A, and of its column of "
    "B, once.",
    best=exact_loads,
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


def owned(elements: Callable[[Case], int], what: str) -> Count:
    """Return the limit on what one program stores, so many elements in a case."""
    return Count(
        "elements stored by a program",
        elements,
        f"The result is right, and some programs do the work of others: {what}",
        "counts",
        share=0,
    )


OWN_TILE = owned(
    lambda case: block_of(case)["BLOCK_M"] * block_of(case)["BLOCK_N"],
    "each stores its own tile of C.",
)


def own_rows(elements: Callable[[Case], int]) -> Count:
    """Return the limit on what a program stores that owns BLOCK_M rows, so many elements."""
    return owned(elements, "each owns BLOCK_M rows.")


def tiles_of(m: int, n: int, block_m: int, block_n: int) -> int:
    """Return how many tiles of block_m × block_n cover a C of m × n."""
    return cover(m, block_m) * cover(n, block_n)

"""The rule of `triton_fp8`: which kernel multiplies 8-bit floats, in which tiles."""

from __future__ import annotations

from triton import cdiv

from tiled_matmul.dispatch.candidates import MOST_SPLITS
from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.kit.float8 import SHARED, Scales

THIN = 64  # rows or columns of a C that has thin tiles
# Tiles of the kernel in Gluon with their stages, and what an element of C costs beside the first's.
FAST_COSTS = {((128, 256), 4): 1.0, ((128, 128), 6): 1.06, ((192, 128), 5): 1.02}
PROMOTED_COSTS = {((192, 128), 5): 1.0, ((128, 128), 6): 1.08}
ACROSS_COSTS = {((128, 128), 6): 1.0, ((192, 64), 6): 1.2}


def pick(
    m: int,
    n: int,
    k: int,
    a: Scales,
    b: Scales,
    fast: bool,
    multiprocessors: int,
    capability=(9, 0),
) -> Choice:
    """Return the kernel for C (M, N) with K products each, and its options.

    A C of few rows or columns has tiles that are as thin, and K in parts; as `wgmma` has 64 rows or
    more, one of few rows is made as its transpose. One of few tiles has K in parts as well. All
    others go to the kernel in Gluon, in those tiles that take the least time: waves times size,
    and a tile's own cost, which was measured on an H200.
    """
    by_blocks = a.by_blocks or b.by_blocks
    if capability != (9, 0):
        return Choice("triton_fp8", {"block": (64, 128, 64), "num_warps": 8, "num_stages": 3})
    long, thin = max(m, n), max(16, 2 ** (min(m, n) - 1).bit_length())
    if thin <= THIN:
        depth, stages = (256, 4) if fast and not by_blocks else (128, 8 if thin == 16 else 6)
        tiles = cdiv(long, 64) * cdiv(min(m, n), thin)
        splits = max(1, (1 if depth == 256 else 2) * multiprocessors // tiles)
        options = {"block": (64, thin, depth), "num_stages": stages, "turned": m <= n}
        return Choice("triton_fp8", options | {"splits": limited(splits, k, depth)})
    tiles = cdiv(m, 64) * cdiv(n, 128)
    mixed = a.by_blocks != b.by_blocks or (a.square and b.square) or k <= SHARED
    if tiles <= multiprocessors or mixed:
        splits = limited((1 if fast or by_blocks else 2) * multiprocessors // tiles, k, SHARED)
        splits = splits if 2 * tiles <= multiprocessors else 1
        return Choice("triton_fp8", {"block": (64, 128, SHARED), "splits": splits})
    if fast and not by_blocks and cdiv(m, 128) * cdiv(n, 256) <= multiprocessors:  # one wave
        options = {"block": (128, 256, SHARED), "num_warps": 8, "num_stages": 3}
        return Choice("triton_fp8", options)
    across = by_blocks and not b.square  # columns have scales of their own
    cost = FAST_COSTS if fast and not by_blocks else ACROSS_COSTS if across else PROMOTED_COSTS

    def took(tile: tuple) -> float:
        rows, columns = tile[0]
        waves = cdiv(cdiv(m, rows) * cdiv(n, columns), multiprocessors)
        return waves * rows * columns * cost[tile]

    block, stages = min(cost, key=took)
    return Choice("triton_fp8_gluon", {"block": block, "num_stages": stages})


def limited(splits: int, k: int, depth: int) -> int:
    """Return how many parts K is cut into: each has two blocks at least."""
    return max(1, min(splits, MOST_SPLITS, cdiv(k, depth) // 2))

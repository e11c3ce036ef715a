"""Second kernels, which add the parts of tiles.

Of equal shares: programs had equal runs of the steps along K of some tiles, and left their sums of
each tile that they had a part of. The parts of a tile are added in the order of the programs, so
that every call returns the same bits. Of parts of K: each part is a matrix of its own, one below
the other.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tiled_matmul.kit.programs import cover, grouped, launch

SUMMED = 16  # rows of a tile that a program adds up
ADDED = 1024  # elements that a program adds up where parts are matrices


@triton.jit
def program_of(step, share, extra):
    """Return the program in whose run a step is: the first `extra` runs have a step more."""
    return max(step // (share + 1), (step - extra) // max(share, 1))


@triton.jit(do_not_specialize=["M", "N", "steps", "before", "share", "extra"])
def add_parts_kernel(
    parts, c, M, N, steps, before, share, extra, c_row, c_col,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr, SUMMED: tl.constexpr,
    OVERLAP: tl.constexpr,
):  # fmt: skip
    nth, strip = tl.program_id(0) // (BLOCK_M // SUMMED), tl.program_id(0) % (BLOCK_M // SUMMED)
    first = program_of(nth * steps, share, extra)
    last = program_of(nth * steps + steps - 1, share, extra)
    if OVERLAP:
        tl.extra.cuda.gdc_wait()  # until the first kernel has stored all parts
    if first < last:
        rows, columns = strip * SUMMED + tl.arange(0, SUMMED)[:, None], tl.arange(0, BLOCK_N)
        at = parts + (rows * BLOCK_N + columns[None, :])
        total = tl.load(at + (2 * first + 1).to(tl.int64) * (BLOCK_M * BLOCK_N))
        for program in range(first + 1, last + 1):
            total += tl.load(at + tl.cast(2 * program, tl.int64) * (BLOCK_M * BLOCK_N))
        tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
        tile_m, tile_n = grouped(before + nth, tiles_m, tiles_n, GROUP_M)
        m, n = tile_m * BLOCK_M + rows, (tile_n * BLOCK_N + columns)[None, :]
        c_at = c + (m.to(tl.int64) * c_row + n.to(tl.int64) * c_col)
        tl.store(c_at, total.to(c.dtype.element_ty), mask=(m < M) & (n < N))


@triton.jit(do_not_specialize=["M", "N"])
def add_splits_kernel(
    sums, c, M, N, apart, width, c_row, c_col,
    PARTS: tl.constexpr, ADDED: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    if OVERLAP:
        tl.extra.cuda.gdc_wait()  # until the first kernel has stored all parts
    at = tl.program_id(0).to(tl.int64) * ADDED + tl.arange(0, ADDED)
    m, n = at // width, at % width
    total = tl.zeros((ADDED,), tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(sums + tl.cast(part, tl.int64) * apart + at, mask=m < M, other=0.0)
    tl.store(c + (m * c_row + n * c_col), total.to(c.dtype.element_ty), mask=(m < M) & (n < N))


def add_splits(sums: Any, parts: int, c: Any, overlap: bool) -> None:
    """Add `parts` parts of C (M, N), in their order: row-major float32, one below the other.

    The parts in `sums` may have more rows and columns than C, which are left out. With `overlap`
    the kernel starts early, and waits for the one before it.
    """
    (m, n), width = c.shape, sums.shape[1]
    numbers = (m, n, sums.shape[0] // parts * width, width, *c.stride())
    grid = (cover(m * width, ADDED),)
    launch(add_splits_kernel, grid, sums, c, *numbers, parts, ADDED, overlap, launch_pdl=overlap)

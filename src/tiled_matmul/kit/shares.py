"""The second kernel of equal shares: it adds the parts of tiles that were cut.

Programs had equal runs of the steps along K of some tiles, and left their sums of each tile that
they had a part of. The parts of a tile are added in the order of the programs, so that every call
returns the same bits.
"""

import triton
import triton.language as tl

from tiled_matmul.kit.programs import grouped

SUMMED = 16  # rows of a tile that a program adds up


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

"""Tiles of 288 rows: two tiles below each other, 256 and 32 high, that share their columns of B.

Triton's tiles have powers of two along both edges, and with those alone a C may be cut into just
too many tiles for the multiprocessors, or into far too few. A program here owns two widths of
columns and BLOCK_M rows, and multiplies each tile of A with two tiles of B; or, with `down`, two
heights of rows: the same kernel on the transposes, since Cᵀ = Bᵀ·Aᵀ. What changed from the rung of
descriptors: the second width, and nothing else. A wide tile next to a small one asks less of shared
memory than two that are alike: each reads the tile that they share.
"""

import triton
import triton.language as tl

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.programs import (
    check_blocks,
    check_group,
    cover,
    describe,
    grouped,
    launch,
    made_describable,
    precision,
    usual,
)

BLOCK = (64, (256, 32), 64)
WARPS = 4
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@triton.jit
def triton_two_widths_kernel(
    a, b, b_narrow, c, M, N, K, c_row, c_col,
    BLOCK_M: tl.constexpr, WIDE: tl.constexpr, NARROW: tl.constexpr,
    BLOCK_K: tl.constexpr, PRECISION: tl.constexpr, GROUP_M: tl.constexpr,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, WIDE + NARROW)
    tile_m, tile_n = grouped(tl.program_id(0), tiles_m, tiles_n, GROUP_M)
    top, left = tile_m * BLOCK_M, tile_n * (WIDE + NARROW)
    far = left + WIDE
    acc = tl.zeros((BLOCK_M, WIDE), tl.float32)
    acc_narrow = tl.zeros((BLOCK_M, NARROW), tl.float32)
    for k in range(0, K, BLOCK_K):
        a_values = a.load([k, top]).T if A_TRANSPOSED else a.load([top, k])
        b_values = b.load([left, k]).T if B_TRANSPOSED else b.load([k, left])
        narrow = b_narrow.load([far, k]).T if B_TRANSPOSED else b_narrow.load([k, far])
        acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
        acc_narrow = tl.dot(a_values, narrow, acc_narrow, input_precision=PRECISION)
    m = (top + tl.arange(0, BLOCK_M))[:, None]
    n, n_narrow = left + tl.arange(0, WIDE)[None, :], far + tl.arange(0, NARROW)[None, :]
    row = c + m.to(tl.int64) * c_row
    dtype: tl.constexpr = c.dtype.element_ty
    tl.store(row + n.to(tl.int64) * c_col, acc.to(dtype), mask=(m < M) & (n < N))
    at = row + n_narrow.to(tl.int64) * c_col
    tl.store(at, acc_narrow.to(dtype), mask=(m < M) & (n_narrow < N))


@remembered
def matmul(a, b, out=None, *, block=None, group_m=GROUP_M, num_warps=None, num_stages=4, down=True):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, (width, width), BLOCK_K), all powers of
    two from 16; None takes BLOCK where it fits (see `usual`), smaller ones elsewhere. `group_m` is
    how many tiles a group has along M. With `down` the widths are heights
    of C, the rows columns of C, and groups go along N. Where no descriptor fits a or b,
    it is first copied (see `describe`). Raises TypeError or ValueError as `tensor_operands`,
    `check_blocks`, `check_group` and `launch` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    c = out
    if down:
        m, n, a, b, c = n, m, b.T, a.T, out.T
    usual_block, num_warps = usual(None, num_warps, a, (BLOCK, WARPS), described=True)
    if block is None and usual_block != BLOCK:
        usual_block = (64, (64, 16), 16)
    block = usual_block if block is None else block
    if not isinstance(block, tuple) or len(block) != 3 or not isinstance(block[1], tuple):
        raise TypeError(f"block must be (BLOCK_M, (width, width), BLOCK_K), got {block!r}")
    for width in block[1]:
        check_blocks((block[0], width, block[2]), num_warps, num_stages)
    check_group(group_m, cover(n, sum(block[1])))
    a, a_transposed = describe(a, block[0], block[2])
    b = made_describable(b)  # once, for both widths
    (wide, b_transposed), (narrow, _) = (describe(b, block[2], width) for width in block[1])
    grid = (cover(m, block[0]) * cover(n, sum(block[1])),)
    options = {"num_warps": num_warps, "num_stages": num_stages}
    switches = (group_m, a_transposed, b_transposed)
    sizes = (m, n, k, *c.stride(), block[0], *block[1], block[2])
    arguments = (a, wide, narrow, c, *sizes, precision(c), *switches)
    launch(triton_two_widths_kernel, grid, *arguments, **options)
    return out

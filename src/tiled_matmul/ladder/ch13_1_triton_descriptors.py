"""Tiles copied by hardware: a tensor descriptor says where a matrix lies, and how large tiles are.

A program owns a tile of C, in the order of the rung below. What changed: it computes no addresses.
It asks for "the tile at (m, k)", and on compute capability 9.0 and later one instruction of one
thread has the whole tile copied to shared memory (TMA), with zeros beyond the edges; on older GPUs
the compiler turns the same words into loads. Descriptors are made by the launcher.
Source: NVIDIA, PTX ISA, "cp.async.bulk.tensor"; Triton's tutorial 09.
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
    precision,
    usual,
)

BLOCK = (128, 256, 64)
WARPS = 8
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@triton.jit
def triton_descriptors_kernel(
    a, b, c, M, N, K, c_row, c_col,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tile_m, tile_n = grouped(tl.program_id(0), tiles_m, tiles_n, GROUP_M)
    top, left = tile_m * BLOCK_M, tile_n * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a_values = a.load([k, top]).T if A_TRANSPOSED else a.load([top, k])
        b_values = b.load([left, k]).T if B_TRANSPOSED else b.load([k, left])
        acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
    m, n = top + tl.arange(0, BLOCK_M), left + tl.arange(0, BLOCK_N)
    c_at = c + (m.to(tl.int64)[:, None] * c_row + n.to(tl.int64)[None, :] * c_col)
    tl.store(c_at, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@remembered
def matmul(a, b, out=None, *, block=None, group_m=GROUP_M, num_warps=None, num_stages=3):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of two, 16 or
    more; None takes BLOCK where it fits (see `usual`). `group_m` is how many tiles a group has
    along M. Where no descriptor fits a or b, it is first
    copied (see `describe`). Raises TypeError or ValueError as `tensor_operands`, `check_blocks`,
    `check_group` and `launch` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    block, num_warps = usual(block, num_warps, a, (BLOCK, WARPS), described=True)
    check_blocks(block, num_warps, num_stages)
    check_group(group_m, cover(n, block[1]))
    (a, a_transposed), (b, b_transposed) = (
        describe(a, block[0], block[2]),
        describe(b, block[2], block[1]),
    )
    grid = (cover(m, block[0]) * cover(n, block[1]),)
    options = {"num_warps": num_warps, "num_stages": num_stages}
    switches = (group_m, a_transposed, b_transposed)
    arguments = (a, b, out, m, n, k, *out.stride(), *block, precision(out), *switches)
    launch(triton_descriptors_kernel, grid, *arguments, **options)
    return out

"""Warps with different work: four copy the tiles, eight multiply them.

A program owns what one of the rung below owns. What changed: its warps. With 4 of them and
`warp_specialize` on the loop over tiles, the compiler makes three groups of 4. One only starts
copies, and gives most of its registers away. Each of the other two multiplies with half of the rows
of a tile of A, and they meet the copies at barriers in shared memory. To be cut in half, a tile has
to have a descriptor that is made in the kernel: one that the launcher makes describes whole tiles
for good.
Source: Triton's tutorial 09 and its passes for Hopper; NVIDIA, CUTLASS, "warp specialization".
"""

import triton
import triton.language as tl

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.programs import (
    LONGEST_NUMBER,
    aligned_like,
    check_blocks,
    check_group,
    cover,
    describe,
    grouped,
    launch,
    memory_on,
    precision,
    usual,
)
from tiled_matmul.kit.specialise import refused, specialises
from tiled_matmul.kit.withheld import withholding

BLOCK = (128, 256, 64)
WARPS = 4  # of which the compiler makes 12
STAGES = 3
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@triton.jit
def triton_specialised_kernel(
    a, b, c, M, N, K, a_stride, b_stride, c_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr, SPECIALISE: tl.constexpr,
):  # fmt: skip
    if A_TRANSPOSED:
        a_in = tl.make_tensor_descriptor(a, (K, M), (a_stride, 1), (BLOCK_K, BLOCK_M))
    else:
        a_in = tl.make_tensor_descriptor(a, (M, K), (a_stride, 1), (BLOCK_M, BLOCK_K))
    if B_TRANSPOSED:
        b_in = tl.make_tensor_descriptor(b, (N, K), (b_stride, 1), (BLOCK_N, BLOCK_K))
    else:
        b_in = tl.make_tensor_descriptor(b, (K, N), (b_stride, 1), (BLOCK_K, BLOCK_N))
    c_out = tl.make_tensor_descriptor(c, (M, N), (c_stride, 1), (BLOCK_M, BLOCK_N))
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first, step = tl.program_id(0), tl.num_programs(0)
    for tile in tl.range(first, tiles_m * tiles_n, step, warp_specialize=SPECIALISE):
        tile_m, tile_n = grouped(tile, tiles_m, tiles_n, GROUP_M)
        top, left = tile_m * BLOCK_M, tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a_tile = a_in.load([k, top]).T if A_TRANSPOSED else a_in.load([top, k])
            b_tile = b_in.load([left, k]).T if B_TRANSPOSED else b_in.load([k, left])
            acc = tl.dot(a_tile, b_tile, acc, input_precision=PRECISION)
        c_out.store([top, left], acc.to(c.dtype.element_ty))


def matmul(
    a, b, out=None, *, block=None, group_m=GROUP_M, num_warps=None, num_stages=None,
    programs=None, specialise=None,
):  # fmt: skip
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of two, 16 or
    more; None takes BLOCK where it fits (see `usual`), and STAGES with it. `group_m` is how many
    tiles a group has along M; `programs` how many run, one for each multiprocessor if None.
    `specialise` asks for warps of different work; None does where `specialises` and `block` is
    BLOCK. Where no descriptor fits a or b, it is first copied; where none fits out, the product is
    made in memory of its own and copied. Descriptors take memory on the GPU, from torch: this sets
    Triton's allocator. Raises TypeError or ValueError as `tensor_operands`, `check_blocks`,
    `check_group` and `launch` do, for sizes that a descriptor cannot hold, and where `specialise`
    is asked for in vain.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    if max(m, n, k) >= LONGEST_NUMBER:
        raise ValueError(f"a descriptor made in a kernel has sizes under 2^31, got {(m, n, k)}")
    if specialise is not None and not isinstance(specialise, bool):
        raise TypeError(f"specialise must be True, False or None, got {specialise!r}")
    block, num_warps = usual(block, num_warps, a, (BLOCK, WARPS), described=True)
    num_stages = (STAGES if block == BLOCK else 2) if num_stages is None else num_stages
    check_blocks(block, num_warps, num_stages)
    check_group(group_m, cover(n, block[1]))
    programs = multiprocessors() if programs is None else positive("programs", programs)
    programs = min(programs, cover(m, block[0]) * cover(n, block[1]))
    can = specialises(block, num_warps, num_stages, a)
    if specialise and not (can or withholding()):
        raise refused(block, num_warps, num_stages, a)
    specialise = can and block == BLOCK if specialise is None else specialise
    a_tiles, a_transposed = describe(a, block[0], block[2])
    b_tiles, b_transposed = describe(b, block[2], block[1])
    c = out if storable(out) else aligned_like(out)
    if c.is_cuda:
        triton.set_allocator(memory_on(c.device))
    strides = (a_tiles.strides[0], b_tiles.strides[0], c.stride(0))
    arguments = (a_tiles.base, b_tiles.base, c, m, n, k, *strides, *block, precision(out))
    switches = (group_m, a_transposed, b_transposed, specialise)
    options = {"num_warps": num_warps, "num_stages": num_stages}
    launch(triton_specialised_kernel, (programs,), *arguments, *switches, **options)
    return out if c is out else out.copy_(c)

"""Persistent programs: one for each multiprocessor, tile after tile, and C stored in two halves.

As many programs are launched as there are multiprocessors, and each takes every so many-th tile of
C, in the order of the rung below. What changed: a program does not end with its tile, so the copies
for the next tile can begin while this one's sums go out. They go out by a descriptor as well, half
a tile at a time, which needs half the shared memory; what that frees is another stage of copies.
Source: Triton's tutorial 09; NVIDIA, CUTLASS, "persistent kernels".
"""

import triton
import triton.language as tl

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.plans import copied, remembered
from tiled_matmul.kit.programs import (
    aligned_like,
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
def triton_persistent_kernel(
    a, b, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr,
    FLATTEN: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first, step = tl.program_id(0), tl.num_programs(0)
    for tile in tl.range(first, tiles_m * tiles_n, step, flatten=FLATTEN):
        tile_m, tile_n = grouped(tile, tiles_m, tiles_n, GROUP_M)
        top, left = tile_m * BLOCK_M, tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a_values = a.load([k, top]).T if A_TRANSPOSED else a.load([top, k])
            b_values = b.load([left, k]).T if B_TRANSPOSED else b.load([k, left])
            acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
        if HALVES:
            pair = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
            near, far = tl.split(pair)
            c.store([top, left], near.to(c.dtype))
            c.store([top, left + BLOCK_N // 2], far.to(c.dtype))
        else:
            c.store([top, left], acc.to(c.dtype))


@remembered
def matmul(
    a,
    b,
    out=None,
    *,
    block=None,
    group_m=GROUP_M,
    num_warps=None,
    num_stages=3,
    programs=None,
    flatten=True,
    halves=True,
):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of two, 16 or
    more; None takes BLOCK where it fits (see `usual`). `group_m` is how many tiles a group has
    along M; `programs` how many run, one for each multiprocessor if None. `flatten` makes one loop
    of tiles and steps, `halves` stores C in two. Where no descriptor fits a or b, it is first
    copied; where none fits out, the product is made in memory of its own and copied. Raises
    TypeError or ValueError as `tensor_operands`, `check_blocks`, `check_group` and `launch` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    block, num_warps = usual(block, num_warps, a, (BLOCK, WARPS), described=True)
    check_blocks(block, num_warps, num_stages)
    check_group(group_m, cover(n, block[1]))
    programs = multiprocessors() if programs is None else positive("programs", programs)
    programs = min(programs, cover(m, block[0]) * cover(n, block[1]))
    a, a_transposed = describe(a, block[0], block[2])
    b, b_transposed = describe(b, block[2], block[1])
    c = out if storable(out) else aligned_like(out)
    to, _ = describe(c, block[0], block[1] // 2 if halves else block[1])
    options = {"num_warps": num_warps, "num_stages": num_stages}
    switches = (group_m, a_transposed, b_transposed, flatten, halves)
    arguments = (a, b, to, m, n, k, *block, precision(out), *switches)
    launch(triton_persistent_kernel, (programs,), *arguments, **options)
    return out if c is out else copied(out, c)

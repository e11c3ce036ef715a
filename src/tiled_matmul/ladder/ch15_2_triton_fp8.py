"""Products of 8-bit floats: tensor cores work twice as fast, and scales put the numbers in range.

A program owns a tile of C, or with SPLITS a part of its sums, as in `triton_split_k`. What changed:
A and B hold e4m3 or e5m2, with scales in float32 beside them. Both lie with K side by side, as
`wgmma` takes 8-bit numbers in no other way: A by rows, B by columns.

The sums of Hopper's tensor cores keep about 14 bits of 8-bit products, although their registers
have 24. So every 128 products their sum is added, or promoted, to one that threads keep in full
float32. `fast` leaves that out. Scales of a whole row are multiplied at the end. Those of 128 of K
have to be multiplied before sums of different blocks are added, which promotes them as well.
Source: NVIDIA, PTX ISA, "wgmma.mma_async"; DeepSeek-V3, section 3.3.2; Triton, `tl.dot`.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tiled_matmul.dispatch.float8 import pick
from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.float8 import SHARED, Scales, by_k, float8_operands
from tiled_matmul.kit.launch import multiprocessors, need_capability
from tiled_matmul.kit.plans import remembered, scratch
from tiled_matmul.kit.programs import (
    can_overlap,
    check_blocks,
    check_group,
    cover,
    grouped,
    launch,
)
from tiled_matmul.ladder import rung
from tiled_matmul.ladder.triton_split_k import SUMMED, sum_parts_kernel

GROUP_M = 8
DTYPES = ("float8_e4m3fn", "float8_e5m2")


@triton.jit
def scales_of(
    scales, first, size, step, AXIS: tl.constexpr, BLOCK: tl.constexpr, SQUARE: tl.constexpr
):  # fmt: skip
    """Return the scales of BLOCK rows from `first` on, with an axis more: one if they share it."""
    if SQUARE and BLOCK <= 128:
        found = tl.load(scales + tl.cast(first // 128, tl.int64) * step)
    else:
        at = first + tl.arange(0, BLOCK)
        row = at // 128 if SQUARE else at
        found = tl.load(scales + row.to(tl.int64) * step, mask=at < size, other=0.0)
        found = tl.expand_dims(found, AXIS)
    return found


@triton.jit(do_not_specialize=["K", "a_block", "b_block", "SPLITS"])
def triton_fp8_kernel(
    a, b, c, scale_a, scale_b, M, N, K, a_row, a_block, b_row, b_block, c_part, c_row, c_col,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    BY_BLOCKS: tl.constexpr, A_SQUARE: tl.constexpr, B_SQUARE: tl.constexpr,
    IMPRECISE: tl.constexpr, SPLITS, OVERLAP: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tiles = tiles_m * tiles_n
    tile, split = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    tile_m, tile_n = grouped(tile, tiles_m, tiles_n, GROUP_M)
    top, left = tile_m * BLOCK_M, tile_n * BLOCK_N
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(split * BLOCK_K, K, SPLITS * BLOCK_K):
        a_values, b_values = a.load([top, k]), b.load([left, k]).T
        if BY_BLOCKS:
            block = tl.cast(k // 128, tl.int64)
            down = scales_of(scale_a + block * a_block, top, M, a_row, 1, BLOCK_M, A_SQUARE)
            across = scales_of(scale_b + block * b_block, left, N, b_row, 0, BLOCK_N, B_SQUARE)
            acc += tl.dot(a_values, b_values) * (down * across)
        else:
            acc = tl.dot(a_values, b_values, acc, max_num_imprecise_acc=IMPRECISE)
    if not BY_BLOCKS:
        acc *= scales_of(scale_a, top, M, a_row, 1, BLOCK_M, A_SQUARE)
        acc *= scales_of(scale_b, left, N, b_row, 0, BLOCK_N, B_SQUARE)
    m, n = top + tl.arange(0, BLOCK_M)[:, None], left + tl.arange(0, BLOCK_N)[None, :]
    at = c + split.to(tl.int64) * c_part + m.to(tl.int64) * c_row + n.to(tl.int64) * c_col
    tl.store(at, acc.to(c.dtype.element_ty), mask=(m < M) & (n < N))


@remembered
def matmul(
    a, b, out=None, *, scale_a, scale_b, out_dtype=None, fast=False, block=None, num_warps=4,
    num_stages=4, group_m=GROUP_M, splits=1, turned=False,
):  # fmt: skip
    """Return (a · scale_a) (M, K) · (b · scale_b) (K, N) as (M, N), summed in float32.

    a and b are torch tensors of float8_e4m3fn or float8_e5m2, in any pairing. Scales are float32:
    (1, 1) or 0-d for all; (M, 1) for rows of a, (1, N) for columns of b; (M, ⌈K/128⌉) and
    (⌈K/128⌉, N) for 128 of K; (⌈M/128⌉, ⌈K/128⌉) and (⌈K/128⌉, ⌈N/128⌉) for blocks of 128 × 128.
    Those of a and b may be of two kinds. `out`, or a new one of `out_dtype`, is bfloat16 (if
    neither is given), float16 or float32; what it cannot hold becomes infinite. All may have any
    sizes and strides, but a is first copied unless it lies by rows that begin at multiples of 16
    bytes, and b unless by such columns. A scale is a factor like any other: NaN, infinite, zero.

    With `fast`, sums stay in the tensor cores. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of
    two from 16 on, BLOCK_K up to 128 where scales differ along K; with None,
    `dispatch.float8.pick` chooses a kernel and its options. `group_m` is how many tiles a group has
    along M, `splits` how many parts K is cut into; with `turned`, the transpose of C is
    computed. Raises TypeError or ValueError as `float8_operands`, `Scales.of`, `check_blocks`,
    `check_group` and `launch` do, and on a GPU of compute capability below 8.9.
    """
    m, n, k, out = float8_operands(a, b, out, out_dtype)
    need_capability((8, 9), "tensor cores for 8-bit floats")
    a_scales = Scales.of("scale_a", scale_a, m, k, out)
    b_scales = Scales.of("scale_b", scale_b, n, k, out)
    by_blocks = a_scales.by_blocks or b_scales.by_blocks
    if block is None:
        gpu = select().gpu
        capability = (9, 0) if gpu is None else gpu.capability
        choice = pick(m, n, k, a_scales, b_scales, fast, multiprocessors(), capability)
        scaled = {"scale_a": scale_a, "scale_b": scale_b, "fast": fast}
        return rung(choice.module).matmul(a, b, out, **scaled, **choice.options)
    check_blocks(block, num_warps, num_stages)
    if by_blocks and block[2] > SHARED:
        raise ValueError(f"scales for {SHARED} of K need a BLOCK_K of at most that, got {block[2]}")
    positive("splits", splits)
    parts = scratch(splits, m, n, dtype=torch.float32, device=a.device) if splits > 1 else out
    sides, steps = ((by_k(a), scale_a, a_scales), (by_k(b.T), scale_b, b_scales)), parts.stride()
    if turned:
        m, n, sides, steps = n, m, sides[::-1], (*steps[:-2], steps[-1], steps[-2])
    check_group(group_m, cover(n, block[1]))
    tiles = [
        TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), [rows, block[2]])
        for (matrix, *_), rows in zip(sides, block[:2], strict=True)
    ]
    (_, down, rows), (_, across, columns) = sides
    overlap = splits > 1 and can_overlap()
    imprecise = None if fast else min(SHARED, block[2])
    arguments = (*tiles, parts, down, across, m, n, k, rows.row, rows.block, columns.row)
    arguments += (columns.block, m * n, *steps[-2:], *block, group_m, by_blocks)
    arguments += (rows.square, columns.square, imprecise, splits, overlap)
    grid = (cover(m, block[0]) * cover(n, block[1]) * splits,)
    made = {"num_warps": num_warps, "num_stages": num_stages}
    launch(triton_fp8_kernel, grid, *arguments, **made)
    if splits > 1:
        total = (parts, out, m * n, out.shape[1], *out.stride(), splits, SUMMED, overlap)
        launch(sum_parts_kernel, (cover(m * n, SUMMED),), *total, launch_pdl=overlap)
    return out

"""Rows that begin anywhere: read by pointers and not copied first; K is cut where C is small.

A descriptor needs rows that begin at multiples of 16 bytes. With 1111 columns they do not, and the
rungs below copy such a matrix first. What changed: tiles come by pointers again, with split-K. A
matrix has a GRAIN, the largest of 8, 4, 2 and 1 that divides the length of its rows and their
distance: so many are loaded at once. Copies past registers need 4 bytes. Of odd rows AHEAD loads
the next tile before this one is multiplied. Source: NVIDIA, PTX, "cp.async".
"""

import torch
import triton
import triton.language as tl

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.grains import places, tile_at, whole, within
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import has_dense_axis, layout_of
from tiled_matmul.kit.plans import copied, remembered, scratch
from tiled_matmul.kit.programs import (
    aligned_like,
    can_overlap,
    check_blocks,
    check_group,
    check_steps,
    copied_as_it_lies,
    cover,
    grouped,
    launch,
    precision,
    usual,
)
from tiled_matmul.ladder.triton_split_k import SUMMED, sum_parts_kernel

BLOCK = (64, 128, 64)
WARPS = 4
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@triton.jit(do_not_specialize=["M", "N", "K", "a_pitch", "b_pitch", "c_pitch", "splits"])
def triton_uneven_kernel(
    a, b, c, M, N, K, a_pitch, b_pitch, c_pitch, splits,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr, OVERLAP: tl.constexpr, ONE_WAVE: tl.constexpr,
    A_GRAIN: tl.constexpr, A_BY_COLUMNS: tl.constexpr, A_AHEAD: tl.constexpr,
    B_GRAIN: tl.constexpr, B_BY_COLUMNS: tl.constexpr, B_AHEAD: tl.constexpr,
    C_GRAIN: tl.constexpr, C_BY_COLUMNS: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tile, split = tl.program_id(0) % (tiles_m * tiles_n), tl.program_id(0) // (tiles_m * tiles_n)
    tile_m, tile_n = grouped(tile, tiles_m, tiles_n, GROUP_M)
    if OVERLAP:
        tl.extra.cuda.gdc_wait()  # until the kernel before has stored everything
        if ONE_WAVE:
            tl.extra.cuda.gdc_launch_dependents()  # there is room for the next kernel
    m, n = tile_m * BLOCK_M + tl.arange(0, BLOCK_M), tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k, step = split * BLOCK_K + tl.arange(0, BLOCK_K), splits * BLOCK_K
    a_at = places(a, a_pitch, m, k, A_GRAIN, A_BY_COLUMNS)
    b_at = places(b, b_pitch, k, n, B_GRAIN, B_BY_COLUMNS)
    a_step = step * (whole(a_pitch, A_GRAIN) if A_BY_COLUMNS else 1)
    b_step = step * (1 if B_BY_COLUMNS else whole(b_pitch, B_GRAIN))
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    if A_AHEAD:
        a_next = tile_at(a_at, m, k, M, K, A_GRAIN, A_BY_COLUMNS)
    if B_AHEAD:
        b_next = tile_at(b_at, k, n, K, N, B_GRAIN, B_BY_COLUMNS)
    for _ in range(split * BLOCK_K, K, step):
        a_tile = a_next if A_AHEAD else tile_at(a_at, m, k, M, K, A_GRAIN, A_BY_COLUMNS)
        b_tile = b_next if B_AHEAD else tile_at(b_at, k, n, K, N, B_GRAIN, B_BY_COLUMNS)
        a_at, b_at, k = a_at + a_step, b_at + b_step, k + step
        if A_AHEAD:
            a_next = tile_at(a_at, m, k, M, K, A_GRAIN, A_BY_COLUMNS)
        if B_AHEAD:
            b_next = tile_at(b_at, k, n, K, N, B_GRAIN, B_BY_COLUMNS)
        acc = tl.dot(a_tile, b_tile, acc, input_precision=PRECISION)
    if OVERLAP and not ONE_WAVE:
        tl.extra.cuda.gdc_launch_dependents()
    to = places(c + split.to(tl.int64) * M * N, c_pitch, m, n, C_GRAIN, C_BY_COLUMNS)
    tl.store(to, acc.to(c.dtype.element_ty), mask=within(m, n, M, N, C_GRAIN, C_BY_COLUMNS))


@remembered
def matmul(
    a, b, out=None, *, block=None, group_m=GROUP_M, splits=1, num_warps=None, num_stages=4,
    ahead=True,
):  # fmt: skip
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of two, 16 or
    more; None takes BLOCK where it fits. `group_m` is how many tiles a group has along M, `splits`
    how many parts K is cut into: more take 4 · splits bytes for each element of C. `ahead` loads
    odd rows a tile ahead. A matrix without a dense axis is copied. Raises as checks and `launch`.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    block, num_warps = usual(block, num_warps, a, (BLOCK, WARPS))
    check_blocks(block, num_warps, num_stages)
    check_group(group_m, cover(n, block[1]))
    positive("splits", splits)
    a, b = (x if has_dense_axis(x) else copied_as_it_lies(x) for x in (a, b))
    check_steps((*block[:2], block[2] * splits), a, b)
    programs, overlap = cover(m, block[0]) * cover(n, block[1]) * splits, can_overlap()
    c = out if has_dense_axis(out) or splits > 1 else aligned_like(out)
    if splits > 1:
        c = scratch(splits * m, n, dtype=torch.float32, device=out.device)
    (a_pitch, *a_lies), (b_pitch, *b_lies), (c_pitch, *c_lies) = map(layout_of, (a, b, c[:m]))
    switches = (precision(a), group_m, overlap, splits > 1 or programs <= multiprocessors())
    switches += (*a_lies, ahead and a_lies[0] == 1, *b_lies, ahead and b_lies[0] == 1, *c_lies)
    sizes = (m, n, k, a_pitch, b_pitch, c_pitch, splits)
    options = {"num_warps": num_warps, "num_stages": num_stages, "launch_pdl": overlap}
    launch(triton_uneven_kernel, (programs,), a, b, c, *sizes, *block, *switches, **options)
    if splits == 1:
        return out if c is out else copied(out, c)
    total = (c, out, m * n, n, *out.stride(), splits, SUMMED, overlap)
    launch(sum_parts_kernel, (cover(m * n, SUMMED),), *total, launch_pdl=overlap)
    return out

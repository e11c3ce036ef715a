"""Split-K: several programs for each tile of C, each with a part of K; a second kernel adds up.

A program owns a tile of C and every SPLITS-th block of K, and stores its sums, in float32, in a
matrix of its own. What changed: a C of few tiles with a long K has work for every multiprocessor.
Programs with neighbouring numbers have the same blocks of K, as neighbouring multiprocessors then
load the same tiles. The price is a second kernel, and SPLITS times C in float32. With OVERLAP it
starts early, and waits. Parts are added in their order: every run gives the same bits.
Source: NVIDIA, CUTLASS, "split-K", in parallel; CUDA, "programmatic dependent launch".
"""

import torch
import triton
import triton.language as tl

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.plans import remembered, scratch
from tiled_matmul.kit.programs import (
    check_blocks,
    check_group,
    cover,
    describe,
    grouped,
    launch,
    overlapping,
    precision,
    usual,
)

BLOCK = (64, 128, 128)
WARPS = 4
STAGES, FEW_STAGES = 4, 3  # fewer where nothing copies whole tiles to shared memory
GROUP_M = 8
SPLITS = 4
SUMMED = 1024  # elements of C that a program of the second kernel adds up
DTYPES = ("float16", "bfloat16", "float32")


@triton.jit
def triton_split_k_kernel(
    a, b, parts, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr,
    SPLITS: tl.constexpr, OVERLAP: tl.constexpr,
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
        a_values = a.load([k, top]).T if A_TRANSPOSED else a.load([top, k])
        b_values = b.load([left, k]).T if B_TRANSPOSED else b.load([k, left])
        acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
    m, n = top + tl.arange(0, BLOCK_M)[:, None], left + tl.arange(0, BLOCK_N)[None, :]
    at = parts + split.to(tl.int64) * M * N + (m.to(tl.int64) * N + n)
    tl.store(at, acc, mask=(m < M) & (n < N))


@triton.jit
def sum_parts_kernel(
    parts, c, size, N, c_row, c_col,
    SPLITS: tl.constexpr, SUMMED: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    if OVERLAP:
        tl.extra.cuda.gdc_wait()  # until the first kernel has stored all parts
    at = tl.program_id(0).to(tl.int64) * SUMMED + tl.arange(0, SUMMED)
    total = tl.zeros((SUMMED,), tl.float32)
    for split in tl.static_range(SPLITS):
        part = parts + tl.cast(split, tl.int64) * size
        total += tl.load(part + at, mask=at < size, other=0.0)
    c_at = c + (at // N * c_row + at % N * c_col)
    tl.store(c_at, total.to(c.dtype.element_ty), mask=at < size)


@remembered
def matmul(
    a, b, out=None, *, block=None, group_m=GROUP_M, splits=SPLITS, num_warps=None,
    num_stages=None, overlap=None,
):  # fmt: skip
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of two, 16 or
    more; None takes BLOCK where it fits (see `usual`), and STAGES with it. `group_m` is how many
    tiles a group has along M; `splits` how many parts K is cut into, some perhaps empty. `overlap`
    lets the second kernel start early, from compute capability 9.0 on; None does so where it can.
    Takes 4 · splits bytes for each element of C. A matrix that no descriptor fits is first copied
    (see `describe`). Raises TypeError or ValueError as `tensor_operands`, `check_blocks`,
    `check_group` and `launch` do, and for an impossible overlap.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    usual_block, num_warps = usual(None, num_warps, a, (BLOCK, WARPS), described=True)
    block = usual_block if block is None else block
    if num_stages is None:
        num_stages = STAGES if usual_block == BLOCK else FEW_STAGES
    check_blocks(block, num_warps, num_stages)
    check_group(group_m, cover(n, block[1]))
    positive("splits", splits)
    overlap = overlapping(overlap)
    a, a_transposed = describe(a, block[0], block[2])
    b, b_transposed = describe(b, block[2], block[1])
    parts = scratch(splits * m * n, dtype=torch.float32, device=out.device)
    grid = (cover(m, block[0]) * cover(n, block[1]) * splits,)
    options = {"num_warps": num_warps, "num_stages": num_stages}
    switches = (precision(out), group_m, a_transposed, b_transposed, splits, overlap)
    launch(triton_split_k_kernel, grid, a, b, parts, m, n, k, *block, *switches, **options)
    total = (parts, out, m * n, n, *out.stride(), splits, SUMMED, overlap)
    launch(sum_parts_kernel, (cover(m * n, SUMMED),), *total, launch_pdl=overlap)
    return out

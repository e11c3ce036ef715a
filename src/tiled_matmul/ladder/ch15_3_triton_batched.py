"""A batch of products in one launch: the batch is one more axis of the tiles.

A program takes tile after tile of all the C's: first those of matrix 0, then those of matrix 1.
What changed from the persistent rung: descriptors have a third axis, and a tile of theirs is
1 × BLOCK_M × BLOCK_K. Small tiles leave room for two programs on a multiprocessor; while one stores
its tile, the other multiplies. That counts here, as products of attention have a short K.

A descriptor needs rows that begin at multiples of 16 bytes, and a copy that makes them so must pay
off. A second kernel goes by pointers, and is told what the rows' strides are multiples of: four
bytes are what an asynchronous copy needs at least.
Source: NVIDIA, cuBLAS, "cublasGemmStridedBatchedEx"; CUDA, "cp.async".
"""

from functools import cache
from typing import NamedTuple

import triton
import triton.language as tl

from tiled_matmul.kit.arguments import batched_operands, positive
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import either_way, storable, with_settled_strides
from tiled_matmul.kit.plans import copied, remembered
from tiled_matmul.kit.programs import (
    aligned_like,
    check_blocks,
    check_count,
    check_group,
    cover,
    describe,
    grouped,
    launch,
    precision,
    store_tile,
    usual,
)

GROUP_M, SHORT = 8, 256  # with a K up to SHORT tiles go along the rows of C, which are most of it
DTYPES = ("float16", "bfloat16", "float32")
WIDE = 128  # tiles of so many columns are stored in halves
COPIED = 512  # rows and columns of a C that is large: then matrices of odd strides are copied


class Tile(NamedTuple):
    """What a program makes, and how many programs a multiprocessor has: 0 is one for each tile."""

    block: tuple
    warps: int
    stages: int
    share: int
    flatten: bool = True


# For large C's, in this order: the first that has a tile for each multiprocessor.
LARGE = (
    Tile((128, 256, 64), 8, 4, 1),
    Tile((128, 128, 64), 4, 3, 2),
    Tile((64, 128, 128), 4, 2, 2),
    Tile((64, 64, 128), 4, 2, 3),
)


@triton.jit
def triton_batched_kernel(
    a, b, c, BATCH, M, N, K, a_step, b_step,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr,
    FLATTEN: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    each = tiles_m * tiles_n
    first, step = tl.program_id(0), tl.num_programs(0)
    for tile in tl.range(first, BATCH * each, step, flatten=FLATTEN):
        batch = tile // each
        tile_m, tile_n = grouped(tile % each, tiles_m, tiles_n, GROUP_M)
        top, left = tile_m * BLOCK_M, tile_n * BLOCK_N
        of_a, of_b = batch * a_step, batch * b_step  # a step is 0 where all have one matrix
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            if A_TRANSPOSED:
                a_values = a.load([of_a, k, top]).reshape(BLOCK_K, BLOCK_M).T
            else:
                a_values = a.load([of_a, top, k]).reshape(BLOCK_M, BLOCK_K)
            if B_TRANSPOSED:
                b_values = b.load([of_b, left, k]).reshape(BLOCK_N, BLOCK_K).T
            else:
                b_values = b.load([of_b, k, left]).reshape(BLOCK_K, BLOCK_N)
            acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
        store_tile(c, batch, top, left, acc, HALVES)


@triton.jit
def triton_batched_pointers_kernel(
    a, b, c, M, N, K, a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row, c_col,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    # Sizes and strides come in units, so that the compiler knows what they are multiples of.
    M, N, K = M * UNITS[0], N * UNITS[1], K * UNITS[2]  # noqa: N806
    a_batch, a_row, a_col = a_batch * UNITS[3], a_row * UNITS[4], a_col * UNITS[5]
    b_batch, b_row, b_col = b_batch * UNITS[6], b_row * UNITS[7], b_col * UNITS[8]
    c_batch, c_row, c_col = c_batch * UNITS[9], c_row * UNITS[10], c_col * UNITS[11]
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    each = tiles_m * tiles_n
    batch = (tl.program_id(0) // each).to(tl.int64)
    tile_m, tile_n = grouped(tl.program_id(0) % each, tiles_m, tiles_n, GROUP_M)
    m = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    n = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    k = tl.arange(0, BLOCK_K).to(tl.int64)
    a_at = a + batch * a_batch + (m * a_row + k[None, :] * a_col)
    b_at = b + batch * b_batch + (k[:, None] * b_row + n * b_col)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a_values = tl.load(a_at, mask=(m < M) & (k[None, :] < K - start), other=0.0)
        b_values = tl.load(b_at, mask=(k[:, None] < K - start) & (n < N), other=0.0)
        acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
        a_at += BLOCK_K * a_col
        b_at += BLOCK_K * b_row
    c_at = c + batch * c_batch + (m * c_row + n * c_col)
    tl.store(c_at, acc.to(c.dtype.element_ty), mask=(m < M) & (n < N))


@cache
def pick(batch, m, n, k, multiprocessors):
    """Return the Tile for descriptors: that of a small C, or the first of LARGE that fits."""
    if m <= 16:
        return Tile((16, 128, 128), 8, 3, 0, False)
    if n <= 16:
        return Tile((128, 16, 128), 4, 3, 0, False)
    if max(m, n) <= 32:
        return Tile((32, 32, 32), 1, 2, 16, False)
    if max(m, n) <= 64:
        return Tile((64, 64, 64), 4, 2 if k <= 64 else 3, 0, False)
    if n <= 64:
        return Tile((128, 64, 64), 4, 4, 2) if k <= 64 else Tile((128, 64, 128), 4, 2, 2)
    if m <= 64:
        return Tile((64, 128, 64), 4, 2, 0, False) if k <= 128 else Tile((64, 128, 128), 4, 2, 2)
    if m <= 128 and k <= 128:
        return Tile((128, 128, 64), 4, 2, 2)
    if n > 128 and k <= 64:
        return Tile((64, 256, 64), 4, 2, 2)
    large = LARGE[1:] if n <= 128 or k <= SHORT else LARGE
    for tile in large:
        if batch * triton.cdiv(m, tile.block[0]) * triton.cdiv(n, tile.block[1]) >= multiprocessors:
            return tile
    return large[-1]


def pick_pointers(m, n):
    """Return the Tile for pointers."""
    if min(m, n) >= COPIED:
        return Tile((128, 256, 64), 8, 4, 0)
    if n <= 64:
        return Tile((128, 64, 32), 4, 4, 0)
    return Tile((64 if m <= 64 else 128, 128, 32), 4, 3, 0)


def in_units(*numbers):
    """Return the numbers in units, and these: powers of two up to 8 elements; 1 stays 1."""
    units = tuple(1 if x == 1 else max(1, min(8, x & -x)) for x in numbers)
    return [x // unit for x, unit in zip(numbers, units, strict=True)], units


def described(m, n, *matrices):
    """Return whether to go by descriptors: the hardware copies tiles, and rows fit or are many."""
    gpu = select().gpu
    if gpu is not None and not (9, 0) <= gpu.capability < (12, 0):
        return False
    odd = any(x.stride(1) % 2 and x.stride(2) % 2 for x in matrices)
    return all(map(either_way, matrices)) or (odd and min(m, n) >= COPIED)


def once(x):
    """Return (matrices, step): the first one and 0 where all are one in memory, else all and 1."""
    return (with_settled_strides(x[:1]), 0) if x.stride(0) == 0 else (x, 1)


def shape_of(a, b):
    """Return the shape of the products, or None if there are none."""
    fit = a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0] and a.shape[2] == b.shape[1]
    return (a.shape[0], a.shape[1], b.shape[2]) if fit else None


@remembered(shape=shape_of)
def matmul(
    a, b, out=None, *, block=None, group_m=None, num_warps=None, num_stages=None, programs=None,
    flatten=None, pointers=None,
):  # fmt: skip
    """Return a (batch, M, K) · b (batch, K, N) as (batch, M, N). DTYPES, out of one dtype.

    The tensors may have any strides; an expanded one has one matrix, which is read as such.
    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of two, 16 or
    more; None takes a `Tile` for the sizes. `group_m` is how many tiles a group has along M,
    `programs` how many run, and `flatten` makes one loop of tiles and steps. `pointers` chooses the
    second kernel, which has a program for each tile and ignores the latter two; None goes by
    `described`. If that has descriptors although they do not fit, a and b are copied; where none
    fits out, the products are made in memory of their own and copied. Raises TypeError or
    ValueError as `batched_operands`, `check_blocks`, `check_count`, `check_group` and `launch` do.
    """
    batch, m, n, k, out = batched_operands(a, b, out, DTYPES)
    a, b, c = map(with_settled_strides, (a, b, out))
    pointers = not described(m, n, a, b) if pointers is None else pointers
    tile = pick_pointers(m, n) if pointers else pick(batch, m, n, k, multiprocessors())
    usual_block, warps = usual(None, None, a, tile[:2], described=tile.block[2] > 32)
    if usual_block != tile.block:  # no tensor cores, or little shared memory
        tile = Tile(usual_block, warps, 3, 0, False)
    block = tile.block if block is None else block
    num_warps = tile.warps if num_warps is None else num_warps
    num_stages = tile.stages if num_stages is None else num_stages
    group_m = (1 if k <= SHORT else GROUP_M) if group_m is None else group_m
    check_blocks(block, num_warps, num_stages)
    check_group(group_m, cover(n, block[1]))
    tiles = check_count(batch * cover(m, block[0]) * cover(n, block[1]))
    sizes = (*block, precision(out), group_m)
    options = {"num_warps": num_warps, "num_stages": num_stages}
    if pointers:
        numbers, units = in_units(m, n, k, *a.stride(), *b.stride(), *c.stride())
        arguments = (a, b, c, *numbers, *sizes, units)
        launch(triton_batched_pointers_kernel, (tiles,), *arguments, **options)
        return out
    if programs is None:
        programs = tile.share * multiprocessors() or tiles
    (a, a_step), (b, b_step) = map(once, (a, b))
    a, a_transposed = describe(a, block[0], block[2])
    b, b_transposed = describe(b, block[2], block[1])
    c = c if (fits := storable(c)) else aligned_like(out)
    halved = block[1] >= WIDE
    to, _ = describe(c, block[0], block[1] // 2 if halved else block[1])
    flatten = tile.flatten if flatten is None else bool(flatten)
    switches = (a_transposed, b_transposed, flatten, halved)
    arguments = (a, b, to, batch, m, n, k, a_step, b_step, *sizes, *switches)
    programs = min(positive("programs", programs), tiles)
    launch(triton_batched_kernel, (programs,), *arguments, **options)
    return out if fits else copied(out, c)

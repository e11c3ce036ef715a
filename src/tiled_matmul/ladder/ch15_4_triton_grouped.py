"""Rows in groups, each with a matrix of its own: one launch that finds out on the GPU who has what.

A mixture of experts sorts its rows by expert: group g ends at row offsets[g], and is multiplied by
b[g]. The offsets are on the GPU, and to read them the host would have to wait. So as many programs
are launched as can run at once, and each counts the tiles of all groups and takes every so many-th.
What changed: a tile's group, and the group's first and last row, are looked up. Groups begin and
end anywhere, so the last tile of a group reaches into the next group. For the loads of A this does
no harm; C is stored by descriptors that end where the group does (see `kit.ragged`).

The gradient of b has its groups along the sum: a second kernel, whose loads end where a group does.
Source: PyTorch, `torch.nn.functional.grouped_mm`; Triton's tutorial 08 and its `ragged_tma`.
"""

import triton
import triton.language as tl

from tiled_matmul.kit.arguments import check_offsets, grouped_operands, positive
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import describable, storable
from tiled_matmul.kit.plans import copied, every_time, remembered
from tiled_matmul.kit.programs import (
    aligned_copy,
    aligned_like,
    check_blocks,
    check_count,
    check_group,
    cover,
    describe,
    grouped,
    halves,
    launch,
    precision,
    store_tile,
    usual,
)
from tiled_matmul.kit.ragged import describe_ragged, load_before, store_before

GROUP_M = 8
WIDE = 128  # tiles of so many columns are stored in halves
DTYPES = ("float16", "bfloat16", "float32")
# By the mean rows of a group, at most: block, warps, stages, programs for a multiprocessor.
TILES = (
    (8, (16, 128, 128), 4, 3, 2),
    (24, (32, 128, 64), 4, 4, 2),
    (40, (64, 256, 64), 4, 4, 1),
    (200, (64, 256, 32), 4, 4, 2),
    (None, (128, 256, 64), 8, 4, 1),
)
ALONG = ((128, 128, 64), 4, 3, 2)  # the same for groups along the sum


@triton.jit
def triton_grouped_kernel(
    a, b, c, offsets, G, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr, GROUPS: tl.constexpr,
    B_TRANSPOSED: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    # All groups at once: where they begin and end, and how many tiles they are high.
    group = tl.arange(0, GROUPS)
    begin = tl.load(offsets + group - 1, mask=(group > 0) & (group < G), other=0)
    end = tl.load(offsets + group, mask=group < G, other=0)
    begin, end = tl.minimum(tl.maximum(begin, 0), M), tl.minimum(tl.maximum(end, 0), M)
    high = tl.where(begin < end, tl.cdiv(end - begin, BLOCK_M), 0)
    until = tl.cumsum(high)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.sum(high) * tiles_n
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        passed = until <= tile // tiles_n  # groups that end before this tile
        mine = tl.sum(passed.to(tl.int32))
        within = tile - tl.sum(tl.where(passed, high, 0)) * tiles_n
        first = tl.sum(tl.where(group == mine, begin, 0))
        last = tl.sum(tl.where(group == mine, end, 0))
        tile_m, tile_n = grouped(within, tl.cdiv(last - first, BLOCK_M), tiles_n, GROUP_M)
        top, left = first + tile_m * BLOCK_M, tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a_values = a.load([top, k])
            if B_TRANSPOSED:
                b_values = b.load([mine, left, k]).reshape(BLOCK_N, BLOCK_K).T
            else:
                b_values = b.load([mine, k, left]).reshape(BLOCK_K, BLOCK_N)
            acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
        if HALVES:
            near, far = halves(acc)
            store_before(c, last, top, left, near)
            store_before(c, last, top, left + BLOCK_N // 2, far)
        else:
            store_before(c, last, top, left, acc)
    # Rows beyond the last group are zero.
    beyond = tl.minimum(tl.maximum(tl.load(offsets + G - 1), 0), M)
    width: tl.constexpr = c.block_shape[3]
    start = beyond + tl.program_id(0) * BLOCK_M
    for top in range(start, M, tl.num_programs(0) * BLOCK_M):
        for left in range(0, N, width):
            store_before(c, M, top, left, tl.zeros((BLOCK_M, width), tl.float32))


@triton.jit
def triton_along_kernel(
    a, b, c, offsets, G, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    each = tiles_m * tiles_n
    for tile in tl.range(tl.program_id(0), G * each, tl.num_programs(0), flatten=True):
        group = tile // each
        tile_m, tile_n = grouped(tile % each, tiles_m, tiles_n, GROUP_M)
        top, left = tile_m * BLOCK_M, tile_n * BLOCK_N
        begin = tl.load(offsets + group - 1, mask=group > 0, other=0)
        begin, end = tl.maximum(begin, 0), tl.minimum(tl.load(offsets + group), K)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(begin, end, BLOCK_K):
            a_values = load_before(a, end, k, top).T
            b_values = load_before(b, end, k, left)
            acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
        store_tile(c, group, top, left, acc, HALVES)


def shape_of(a, b, offsets=None):
    """Return the shape of a product in groups, or None if there is none."""
    if a.ndim != 2 or b.ndim not in (2, 3) or offsets is None or offsets.ndim != 1:
        return None
    along = () if b.ndim == 3 else (offsets.shape[0],)
    return (*along, a.shape[0], b.shape[-1])


def tile_for(rows, a):
    """Return a tile of TILES for groups of so many rows, ALONG for None, or what a can have."""
    fits = [tile for most, *tile in TILES if rows is not None and (most is None or rows <= most)]
    block, *rest = fits[0] if fits else ALONG
    usual_block, warps = usual(None, None, a, (block, rest[0]), described=True)
    return (block, *rest) if usual_block == block else (usual_block, warps, 3, 2)


@remembered(shape=shape_of)
def matmul(
    a, b, out=None, *, offsets, check=None, block=None, group_m=GROUP_M, num_warps=None,
    num_stages=None, programs=None,
):  # fmt: skip
    """Return the products of groups, as `torch._grouped_mm` does, for torch tensors of any strides.

    With a (M, K) and b (groups, K, N), row i of the (M, N) is that of a times the b of its group;
    group g ends before row offsets[g], and rows beyond the last group are zero. With b (K, N), it
    is the groups' columns of a and rows of b that end there, each group has a product, and what is
    beyond the last one is in none. Groups may be empty, and all of them.

    `offsets` is int32 (groups,), on the GPU, and is not waited for. If they fall or exceed a's
    size, elements of the result are wrong, but no memory beside it is touched. `check` looks at
    them, which waits for the GPU; None does so in the interpreter. DTYPES, out of one dtype; sums
    are in float32. `block`, `num_warps` and `num_stages` are as in `triton_persistent`; None takes
    those of TILES. `programs` are how many run, None: as many as can at once. Where no descriptor
    fits a matrix, it is copied. Raises TypeError or ValueError as `grouped_operands`,
    `check_offsets`, `check_blocks`, `check_group` and `launch` do.
    """
    groups, m, n, k, out = grouped_operands(a, b, offsets, out, DTYPES)
    rows = b.ndim == 3
    if check or (check is None and not select().on_gpu):
        every_time()
        check_offsets(offsets, m if rows else k)
    usual_block, warps, stages, share = tile_for(-(-m // groups) if rows else None, a)
    block = usual_block if block is None else block
    num_warps = warps if num_warps is None else num_warps
    num_stages = stages if num_stages is None else num_stages
    check_blocks(block, num_warps, num_stages)
    high, wide = cover(m, block[0]), cover(n, block[1])
    check_group(group_m, wide)
    most = check_count((high + groups if rows else high * groups) * wide)
    programs = share * multiprocessors() if programs is None else positive("programs", programs)
    if a.numel() == 0:
        return out.zero_()
    c = out if storable(out) else aligned_like(out)
    halved = block[1] >= WIDE
    tile = block[0], block[1] // 2 if halved else block[1]
    sizes = (offsets, groups, m, n, k, *block, precision(out), group_m)
    options = {"num_warps": num_warps, "num_stages": num_stages}
    if rows:  # which begin anywhere: Triton's interpreter wants them to lie row by row
        a, _ = describe(a if describable(a) else aligned_copy(a), block[0], block[2])
        b, b_transposed = describe(b, block[2], block[1])
        switches = (triton.next_power_of_2(groups), b_transposed, halved)
        arguments = (a, b, describe_ragged(c, *tile), *sizes, *switches)
        launch(triton_grouped_kernel, (min(programs, most),), *arguments, **options)
    else:
        a, b = (x if describable(x) else aligned_copy(x) for x in (a.T, b))
        a, b = describe_ragged(a, block[2], block[0]), describe_ragged(b, block[2], block[1])
        arguments = (a, b, describe(c, *tile)[0], *sizes, halved)
        launch(triton_along_kernel, (min(programs, most),), *arguments, **options)
    return out if c is out else copied(out, c)

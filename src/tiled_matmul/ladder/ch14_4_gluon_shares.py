"""Equal shares in Gluon (Stream-K): programs divide the steps along K of all tiles, not the tiles.

The roles, the ring and its barriers are those of `gluon_persistent`. A program first takes some
tiles whole, one of each wave. What changed: the steps of the remaining tiles, tile after tile, form
one sequence, and each program takes an equal run of it. A run may begin or end inside a tile; the
sums of such a part go to a workspace, in float32, and a second kernel adds the parts of each cut
tile in their order. So all programs end together, and every call returns the same bits.

In 16-bit floats on a GPU of compute capability 9.0; elsewhere `triton_descriptors` runs.
Source: Osama et al. 2023, "Stream-K"; NVIDIA, CUTLASS, "stream-K decomposition".
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.clusters import described_for
from tiled_matmul.kit.gluon import (
    Order,
    Tile,
    check_rings,
    hopper,
    make_barriers,
    of_rows,
    operand,
    place_of,
    start_copy,
    store,
    zeros,
)
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.plans import copied, remembered, scratch
from tiled_matmul.kit.programs import (
    LONGEST_NUMBER,
    aligned_like,
    can_overlap,
    check_group,
    cover,
    launch,
)
from tiled_matmul.kit.shares import SUMMED, add_parts_kernel
from tiled_matmul.ladder import triton_descriptors

BLOCK = (128, 256, 64)
GROUPS = gl.constexpr(2)
PIECE = 64  # columns of C that a group stores at a time, at most; of parts, half as many
STAGES = 4
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@gluon.jit
def segment(turn, run):
    """Return a tile, this program's first step of it, and the step behind its last."""
    steps, whole, first, behind, turns = run
    if turn < whole:
        tile, begin, end = turn * gl.num_programs(0) + gl.program_id(0), 0, steps
    else:
        nth = first // steps + turn - whole  # of the tiles that may be cut
        tile, begin = whole * gl.num_programs(0) + nth, max(first - nth * steps, 0)
        end = min(behind - nth * steps, steps)
    return tile, begin, end


@gluon.jit
def copy(a, b, M, N, run, ring, TILE: gl.constexpr, ORDER: gl.constexpr):
    a_tiles, b_tiles, full, empty = ring
    BYTES: gl.constexpr = 2 * (TILE.height + TILE.width) * TILE.k
    step = 0
    for turn in range(run[4]):
        tile, begin, end = segment(turn, run)
        top, left = place_of(tile, M, N, TILE.height, TILE.width, ORDER.group_m)
        for k in range(begin, end):
            slot, lap = step % TILE.stages, step // TILE.stages
            mbarrier.wait(empty.index(slot), lap % 2 ^ 1)
            arrived = full.index(slot)
            mbarrier.expect(arrived, BYTES)
            for group in gl.static_range(GROUPS):
                row, to = top + group * TILE.rows, a_tiles.index(slot * GROUPS + group)
                start_copy(a, row, k * TILE.k, arrived, to, ORDER.a_transposed)
            start_copy(b, k * TILE.k, left, arrived, b_tiles.index(slot), ORDER.b_transposed)
            step += 1


@gluon.jit
def multiply(
    group: gl.constexpr, outputs, M, N, run, ring, TILE: gl.constexpr, ORDER: gl.constexpr
):  # fmt: skip
    c, parts, c_pieces, part_pieces = outputs
    a_tiles, b_tiles, full, empty = ring
    step = 0
    for turn in range(run[4]):
        tile, begin, end = segment(turn, run)
        acc = zeros(TILE.rows, TILE.width)
        for k in range(begin, end):
            slot, lap = step % TILE.stages, step // TILE.stages
            mbarrier.wait(full.index(slot), lap % 2)
            a_tile = operand(a_tiles.index(slot * GROUPS + group), ORDER.a_transposed)
            b_tile = operand(b_tiles.index(slot), ORDER.b_transposed)
            acc = warpgroup_mma(a_tile, b_tile, acc, is_async=True)
            acc = warpgroup_mma_wait(1, deps=[acc])
            mbarrier.arrive(empty.index((step + TILE.stages - 1) % TILE.stages), pred=k > begin)
            step += 1
        acc = warpgroup_mma_wait(0, deps=[acc])
        mbarrier.arrive(empty.index((step + TILE.stages - 1) % TILE.stages))
        if end - begin == run[0]:
            top, left = place_of(tile, M, N, TILE.height, TILE.width, ORDER.group_m)
            store(acc, c, top + group * TILE.rows, left, c_pieces.index(group), ORDER.c_transposed)
        else:  # to slot 2p + 1 where the tile begins in this run, else to slot 2p
            row = (2 * gl.program_id(0) + (begin == 0)) * TILE.height + group * TILE.rows
            store(acc, parts, row, 0, part_pieces.index(group), False)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["M", "N", "steps", "whole", "share", "extra"])
def gluon_shares_kernel(
    a, b, c, parts, M, N, steps, whole, share, extra, TILE: gl.constexpr, ORDER: gl.constexpr
):  # fmt: skip
    STAGES: gl.constexpr = TILE.stages
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES * GROUPS] + a.block_shape, a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    c_pieces = gl.allocate_shared_memory(c.dtype, [GROUPS] + c.block_shape, c.layout)
    pieces = gl.allocate_shared_memory(parts.dtype, [GROUPS] + parts.block_shape, parts.layout)
    ring = (a_tiles, b_tiles, make_barriers(STAGES, 1), make_barriers(STAGES, GROUPS))
    p, outputs = gl.program_id(0), (c, parts, c_pieces, pieces)
    first, behind = p * share + min(p, extra), (p + 1) * share + min(p + 1, extra)
    run = (steps, whole, first, behind, whole + gl.cdiv(behind, steps) - first // steps)
    gl.warp_specialize(
        [
            (multiply, (0, outputs, M, N, run, ring, TILE, ORDER)),
            (multiply, (1, outputs, M, N, run, ring, TILE, ORDER)),
            (copy, (a, b, M, N, run, ring, TILE, ORDER)),
        ],
        [4, 1],
        [240, 24],
    )


@remembered
def matmul(
    a, b, out=None, *, block=BLOCK, group_m=GROUP_M, num_stages=STAGES, programs=None, whole=None
):  # fmt: skip
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), `group_m` how many tiles
    a group has along M, `num_stages` the steps along K that the ring holds, `programs` how many
    run, one for each multiprocessor if None, and at most one for each step. Each program first
    takes `whole` tiles, or as many as all programs can; None leaves one to two tiles for each
    program to share. Takes 8 · BLOCK_M · BLOCK_N bytes for each program if a tile is cut. Where no
    descriptor fits a or b, it is first copied; where none fits out, the product is made in memory
    of its own and copied. For float32, and where `kit.gluon.hopper` says no, `triton_descriptors`
    multiplies, in blocks of its own. Raises TypeError or ValueError as `tensor_operands`,
    `check_rings` and `check_group` do, and for 2^31 steps or more.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    rows, room = check_rings(block, num_stages, GROUPS.value, 2 * PIECE, fewest=2)
    check_group(group_m, cover(n, block[1]))
    programs = multiprocessors() if programs is None else positive("programs", programs)
    if whole is not None and (type(whole) is not int or whole < 0):
        raise ValueError(f"whole must be None or an int from 0 on, got {whole!r}")
    tiles, steps = cover(m, block[0]) * cover(n, block[1]), cover(k, block[2])
    if tiles * steps >= LONGEST_NUMBER:
        raise ValueError(f"{tiles} tiles of {steps} steps each: that is 2^31 steps or more")
    if not hopper(a):
        return triton_descriptors.matmul(a, b, out)
    programs = min(programs, tiles * steps)
    waves = tiles // programs
    whole = max(0, waves - 1) if whole is None else min(whole, waves)
    shared = tiles - whole * programs
    share, extra = divmod(shared * steps, programs)
    cut = steps > 1 and (share % steps > 0 or extra > 0)
    c = out if storable(out) or storable(out.T) else aligned_like(out)
    slots = 2 * programs if cut else 1
    parts = scratch(slots * block[0], block[1], dtype=torch.float32, device=out.device)
    tiles_a, a_transposed = described_for(a, rows, block[2], ())
    tiles_b, b_transposed = described_for(b, block[2], block[1], ())
    tiles_c, c_transposed = described_for(c, rows, room // 2, ())
    tile = Tile(rows, GROUPS.value, block[1], 0, block[2], num_stages)
    order = Order(group_m, a_transposed, b_transposed, c_transposed)
    matrices = (tiles_a, tiles_b, tiles_c, of_rows(parts, rows, max(8, room // 4)))
    numbers = (m, n, steps, whole, share, extra, tile, order)
    launch(gluon_shares_kernel, (programs,), *matrices, *numbers, num_warps=4)
    if cut:
        grid, overlap = (shared * (block[0] // SUMMED),), can_overlap()
        numbers = (m, n, steps, whole * programs, share, extra, *c.stride())
        switches = (*block[:2], group_m, SUMMED, overlap)
        launch(add_parts_kernel, grid, parts, c, *numbers, *switches, launch_pdl=overlap)
    return out if c is out else copied(out, c)

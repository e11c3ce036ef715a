"""Tiles that fit the shape: two widths, one to three groups of rows, alone or in clusters.

The roles and barriers are those of the rungs before. What changed is what a tile may be: up to
three groups of warps own rows of it, and beside a wide tile of B there can be a narrow one, so that
192 columns are 128 and 64. Matrices that lie by columns are copied as they lie, and turned where
the tensor cores read them. With clusters of one block, nothing is shared. K may be cut into parts,
as `triton_split_k` does: programs take each tile once for each part, and a second kernel adds up.

In 16-bit floats on compute capability 9.0, clusters with Triton 3.8; else `triton_descriptors`.
Source: Triton's tutorials on Gluon; NVIDIA, CUTLASS, "warp-specialized cooperative kernels".
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
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.clusters import (
    at_once,
    cluster_tile,
    described_for,
    leave_together,
    make_cluster_barriers,
    start_copy_for,
    zeros_for,
)
from tiled_matmul.kit.gluon import (
    FEW,
    Order,
    hopper,
    make_barriers,
    multicasts,
    operand,
    place_of,
    start_copy,
    store,
    tiles,
)
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.plans import copied, remembered, scratch
from tiled_matmul.kit.programs import (
    aligned_like,
    check_group,
    cover,
    launch,
    made_describable,
    overlapping,
)
from tiled_matmul.kit.shares import add_splits
from tiled_matmul.ladder import triton_descriptors

BLOCK = (128, (128, 64), 64)
STAGES = 5
GROUP_M = 8
FLOATS = 4  # of a row of parts: a multiple of 16 bytes
BLOCKS = 2  # of a cluster
DTYPES = ("float16", "bfloat16", "float32")


@gluon.jit
def job(turn, sizes, TILE: gl.constexpr, ORDER: gl.constexpr):
    """Return a tile's place, the row where its sums go, and its part of K."""
    M, N, K, parts = sizes
    if ORDER.cut:
        number = tiles(M, N, TILE.all_rows, TILE.width)
        part, steps = turn // number, gl.cdiv(K, TILE.k)
        top, left = place_of(turn % number, M, N, TILE.all_rows, TILE.width, ORDER.group_m)
        row = top + part * gl.cdiv(M, TILE.all_rows) * TILE.all_rows
        begin, end = part * steps // parts * TILE.k, (part + 1) * steps // parts * TILE.k
    else:
        top, left = place_of(turn, M, N, TILE.all_rows, TILE.width, ORDER.group_m)
        row, begin, end = top, 0, K
    return top, left, row, begin, end


@gluon.jit
def jobs(sizes, TILE: gl.constexpr, ORDER: gl.constexpr):
    """Return how many tiles there are, times the parts of K."""
    M, N, K, parts = sizes
    number = tiles(M, N, TILE.all_rows, TILE.width)
    if ORDER.cut:
        number *= parts
    return number


@gluon.jit
def copy(work, TILE: gl.constexpr, ORDER: gl.constexpr):
    matrices, buffers, barriers, sizes = work
    a, b, b_narrow, c = matrices
    a_tiles, b_tiles, narrow_tiles, c_pieces = buffers
    full, empty, shared = barriers
    BYTES: gl.constexpr = 2 * (TILE.height + TILE.width) * TILE.k  # of each block
    SHARED: gl.constexpr = TILE.blocks > 1
    GROUPS: gl.constexpr = TILE.groups
    step = 0
    for turn in range(gl.program_id(0), jobs(sizes, TILE, ORDER), gl.num_programs(0)):
        top, left, row, begin, end = job(turn, sizes, TILE, ORDER)
        for k in range(begin, end, TILE.k):
            slot, lap = step % TILE.stages, step // TILE.stages
            mbarrier.wait(empty.index(slot), lap % 2 ^ 1)
            if SHARED:
                mbarrier.wait(shared.index(slot), lap % 2 ^ 1)
            arrived = full.index(slot)
            mbarrier.expect(arrived, BYTES)
            for group in gl.static_range(GROUPS):
                to = a_tiles.index(slot * GROUPS + group)
                start_copy(a, top + group * TILE.stack, k, arrived, to, ORDER.a_transposed)
            to = b_tiles.index(slot)
            start_copy_for(b, k, left, arrived, to, ORDER.b_transposed, SHARED)
            if TILE.narrow:
                to, far = narrow_tiles.index(slot), left + TILE.wide
                start_copy_for(b_narrow, k, far, arrived, to, ORDER.b_transposed, SHARED)
            step += 1
    if ORDER.leads:
        gdc_launch_dependents()  # the next kernel may set up its barriers, and wait


@gluon.jit
def give_back(slot, empty, shared, there, TILE: gl.constexpr):
    mbarrier.arrive(empty.index(slot), pred=there)
    if TILE.blocks > 1:
        mbarrier.arrive(shared.index(slot), pred=there)


@gluon.jit
def multiply(group: gl.constexpr, work, TILE: gl.constexpr, ORDER: gl.constexpr):
    matrices, buffers, barriers, sizes = work
    a, b, b_narrow, c = matrices
    a_tiles, b_tiles, narrow_tiles, c_pieces = buffers
    full, empty, shared = barriers
    WIDE: gl.constexpr = TILE.wide_sums
    NARROW: gl.constexpr = TILE.narrow_sums
    step = 0
    for turn in range(gl.program_id(0), jobs(sizes, TILE, ORDER), gl.num_programs(0)):
        top, left, row, begin, end = job(turn, sizes, TILE, ORDER)
        acc = zeros_for(TILE.stack, TILE.wide, WIDE)
        narrow = acc
        if TILE.narrow:
            narrow = zeros_for(TILE.stack, TILE.narrow, NARROW)
        for k in range(begin, end, TILE.k):
            slot, lap = step % TILE.stages, step // TILE.stages
            mbarrier.wait(full.index(slot), lap % 2)
            a_tile = operand(a_tiles.index(slot * TILE.groups + group), ORDER.a_transposed)
            b_tile = operand(b_tiles.index(slot), ORDER.b_transposed)
            acc = warpgroup_mma(a_tile, b_tile, acc, is_async=True)
            if TILE.narrow:
                b_tile = operand(narrow_tiles.index(slot), ORDER.b_transposed)
                narrow = warpgroup_mma(a_tile, b_tile, narrow, is_async=True)
                acc, narrow = warpgroup_mma_wait(2, deps=[acc, narrow])
            else:
                acc = warpgroup_mma_wait(1, deps=[acc])
            give_back(
                (step + TILE.stages - 1) % TILE.stages, empty, shared, k > begin, TILE
            )  # fmt: skip
            step += 1
        if TILE.narrow:
            acc, narrow = warpgroup_mma_wait(0, deps=[acc, narrow])
        else:
            acc = warpgroup_mma_wait(0, deps=[acc])
        give_back((step + TILE.stages - 1) % TILE.stages, empty, shared, end > begin, TILE)
        row, piece = row + group * TILE.stack, c_pieces.index(group)
        store(acc, c, row, left, piece, ORDER.c_transposed)
        if TILE.narrow:
            store(narrow, c, row, left + TILE.wide, piece, ORDER.c_transposed)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["M", "N", "K", "parts"])
def gluon_shapes_kernel(
    a, b, b_narrow, c, M, N, K, parts, TILE: gl.constexpr, ORDER: gl.constexpr
):  # fmt: skip
    STAGES: gl.constexpr = TILE.stages
    GROUPS: gl.constexpr = TILE.groups
    PARTS: gl.constexpr = STAGES * GROUPS  # of A: each group has its own
    a_tiles = gl.allocate_shared_memory(a.dtype, [PARTS] + a.block_shape, a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    narrow_tiles = b_tiles
    if TILE.narrow:
        shape: gl.constexpr = [STAGES] + b_narrow.block_shape
        narrow_tiles = gl.allocate_shared_memory(b.dtype, shape, b_narrow.layout)
    c_pieces = gl.allocate_shared_memory(c.dtype, [GROUPS] + c.block_shape, c.layout)
    if TILE.blocks > 1:
        full = make_cluster_barriers(STAGES, 1, TILE.blocks, TILE.cluster.own)
        empty = make_cluster_barriers(STAGES, GROUPS, TILE.blocks, TILE.cluster.own)
        shared = make_cluster_barriers(STAGES, GROUPS, 1, TILE.cluster.shared)
    else:
        full, empty = make_barriers(STAGES, 1), make_barriers(STAGES, GROUPS)
        shared = empty
    buffers = (a_tiles, b_tiles, narrow_tiles, c_pieces)
    work = ((a, b, b_narrow, c), buffers, (full, empty, shared), (M, N, K, parts))
    MANY: gl.constexpr = TILE.registers
    if ORDER.overlap:
        gdc_wait()  # until the kernel before has stored everything
    # fmt: off
    if GROUPS == 1:
        gl.warp_specialize([
            (multiply, (0, work, TILE, ORDER)), (copy, (work, TILE, ORDER)),
        ], [1], [FEW])
    elif GROUPS == 2:
        gl.warp_specialize([
            (multiply, (0, work, TILE, ORDER)), (multiply, (1, work, TILE, ORDER)),
            (copy, (work, TILE, ORDER)),
        ], [4, 1], [MANY, FEW])
    else:
        gl.warp_specialize([
            (multiply, (0, work, TILE, ORDER)), (multiply, (1, work, TILE, ORDER)),
            (multiply, (2, work, TILE, ORDER)), (copy, (work, TILE, ORDER)),
        ], [4, 4, 1], [MANY, MANY, FEW])
    # fmt: on
    if TILE.blocks > 1:
        leave_together()


@remembered
def matmul(
    a, b, out=None, *, block=BLOCK, group_m=GROUP_M, num_stages=STAGES, blocks=BLOCKS,
    programs=None, down=False, splits=1, overlap=None,
):  # fmt: skip
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (rows, columns, K) of one block of threads, the
    columns a width or two, see `kit.gluon.tile_of`; a cluster has `blocks` of them, one below the
    other: a power of two up to 16, or 1. `group_m` is how many tiles a group has along M,
    `num_stages` the steps along K that the ring holds, `programs` how many clusters run, None as
    many as have room. With `down` the columns of a tile are rows of C, as the transpose is
    computed. K is cut into `splits` parts, some perhaps empty; more than one take 4 · splits bytes
    for each element of C's tiles, and are added in order. With `overlap` the kernel starts early
    and lets the next one do so, see `kit.programs.overlapping`. Where no descriptor fits a or b, it
    is first copied; where none fits out, the product is copied there. For float32, and where
    `hopper` says no, `triton_descriptors` multiplies, in blocks of its own; where `multicasts` says
    no, clusters have one block. Raises as `tensor_operands`, `cluster_tile` and `launch`.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    tile = cluster_tile(block, num_stages, blocks)
    if blocks > 1 and not multicasts():
        tile = cluster_tile(block, num_stages, 1)
    c = out
    if down:
        m, n, a, b, c = n, m, b.T, a.T, out.T
    tiles_n = cover(n, tile.width)
    check_group(group_m, tiles_n)
    programs = at_once(tile.blocks, multiprocessors()) if programs is None else programs
    positive("programs", programs)
    positive("splits", splits)
    overlap = overlapping(overlap)
    if not hopper(a):
        triton_descriptors.matmul(a, b, c)
        return out
    cut, number = splits > 1, cover(m, tile.all_rows) * tiles_n
    if cut:
        rows, columns = cover(m, tile.all_rows) * tile.all_rows, cover(n, FLOATS) * FLOATS
        to = scratch(splits * rows, columns, dtype=torch.float32, device=out.device)
    else:
        to = c if storable(c) or storable(c.T) else aligned_like(c)
    b = made_describable(b)  # once, for both widths
    stacked, same = tile.cluster.stacked, tile.cluster.same
    a_tiles, a_transposed = described_for(a, tile.stack, tile.k, stacked)
    b_tiles, b_transposed = described_for(b, tile.k, tile.wide, same)
    b_narrow, _ = described_for(b, tile.k, tile.narrow, same) if tile.narrow else (b_tiles, False)
    piece = max(8, tile.piece // 2) if cut else tile.piece
    pieces, c_transposed = described_for(to, tile.stack, piece, stacked)
    order = Order(group_m, a_transposed, b_transposed, c_transposed, cut, overlap)
    arguments = (a_tiles, b_tiles, b_narrow, pieces, m, n, k, splits, tile, order)
    grid = (min(programs, number * splits),)
    options = {"num_warps": 4, "num_ctas": tile.blocks, "launch_pdl": overlap}
    launch(gluon_shapes_kernel, grid, *arguments, **options)
    if cut:
        add_splits(to, splits, c, overlap)
    elif to is not c:
        copied(c, to)
    return out

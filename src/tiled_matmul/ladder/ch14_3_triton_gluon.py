"""Tiles of 192 × 192: warps, buffers and barriers by hand, in Gluon.

A program takes tile after tile, as `triton_persistent` does. What changed: the tile, and who
decides. Triton's tiles have powers of two along both edges, and its compiler says which warps do
what, and when they wait. In Gluon, which comes with Triton, the kernel does. One warp starts all
copies. Up to three groups of four warps share a tile: each owns some of its rows, and starts the
products of one block of K before those of the last one are done. Barriers are those of chapter 13.

This needs 16-bit floats and a GPU of compute capability 9.0. Elsewhere, and without a GPU,
`triton_descriptors` runs in its place.
Source: Triton's tutorials on Gluon; NVIDIA, CUTLASS, "warp-specialized cooperative kernels".
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.gluon import (
    FEW,
    Order,
    can_run,
    corner,
    described,
    make_ring,
    operand,
    start_copy,
    store,
    tile_of,
    tiles_of,
    zeros,
)
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.plans import copied, remembered
from tiled_matmul.kit.programs import aligned_like, check_group, cover, launch, made_describable
from tiled_matmul.ladder import triton_descriptors

BLOCK = (192, (128, 64), 64)
STAGES = 4
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@gluon.jit
def copy(work, TILE: gl.constexpr, ORDER: gl.constexpr):
    tensors, buffers, barriers, sizes = work
    a, b, b_narrow, c = tensors
    a_tiles, b_tiles, narrow_tiles, c_pieces = buffers
    full, empty = barriers
    M, N, K = sizes
    GROUPS: gl.constexpr = TILE.groups
    BYTES: gl.constexpr = 2 * (TILE.height + TILE.width) * TILE.k
    step = 0
    for tile in range(gl.program_id(0), tiles_of(M, N, TILE), gl.num_programs(0)):
        top, left = corner(tile, M, N, TILE, ORDER)
        for k in range(0, K, TILE.k):
            slot, lap = step % TILE.stages, step // TILE.stages
            mbarrier.wait(empty.index(slot), lap % 2 ^ 1)
            arrived = full.index(slot)
            mbarrier.expect(arrived, BYTES)
            for group in gl.static_range(GROUPS):
                to = a_tiles.index(slot * GROUPS + group)
                start_copy(a, top + group * TILE.rows, k, arrived, to, ORDER.a_transposed)
            start_copy(b, k, left, arrived, b_tiles.index(slot), ORDER.b_transposed)
            if TILE.narrow:
                to, far = narrow_tiles.index(slot), left + TILE.wide
                start_copy(b_narrow, k, far, arrived, to, ORDER.b_transposed)
            step += 1


@gluon.jit
def multiply(group: gl.constexpr, work, TILE: gl.constexpr, ORDER: gl.constexpr):
    tensors, buffers, barriers, sizes = work
    a, b, b_narrow, c = tensors
    a_tiles, b_tiles, narrow_tiles, c_pieces = buffers
    full, empty = barriers
    M, N, K = sizes
    step = 0
    for tile in range(gl.program_id(0), tiles_of(M, N, TILE), gl.num_programs(0)):
        top, left = corner(tile, M, N, TILE, ORDER)
        acc = zeros(TILE.rows, TILE.wide)
        acc_narrow = zeros(TILE.rows, TILE.narrow) if TILE.narrow else acc
        for k in range(0, K, TILE.k):
            slot, lap = step % TILE.stages, step // TILE.stages
            mbarrier.wait(full.index(slot), lap % 2)
            mine = slot * TILE.groups + group
            a_tile = operand(a_tiles.index(mine), ORDER.a_transposed)
            b_tile = operand(b_tiles.index(slot), ORDER.b_transposed)
            acc = warpgroup_mma(a_tile, b_tile, acc, is_async=True)
            if TILE.narrow:
                b_tile = operand(narrow_tiles.index(slot), ORDER.b_transposed)
                acc_narrow = warpgroup_mma(a_tile, b_tile, acc_narrow, is_async=True)
                acc, acc_narrow = warpgroup_mma_wait(2, deps=[acc, acc_narrow])
            else:
                acc = warpgroup_mma_wait(1, deps=[acc])
            # All products before these are done: their buffers can be filled again.
            before = (step + TILE.stages - 1) % TILE.stages
            mbarrier.arrive(empty.index(before), pred=k > 0)
            step += 1
        if TILE.narrow:
            acc, acc_narrow = warpgroup_mma_wait(0, deps=[acc, acc_narrow])
        else:
            acc = warpgroup_mma_wait(0, deps=[acc])
        mbarrier.arrive(empty.index((step + TILE.stages - 1) % TILE.stages))
        row, piece = top + group * TILE.rows, c_pieces.index(group)
        store(acc, c, row, left, piece, ORDER.c_transposed)
        if TILE.narrow:
            store(acc_narrow, c, row, left + TILE.wide, piece, ORDER.c_transposed)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["M", "N", "K"])
def triton_gluon_kernel(
    a, b, b_narrow, c, M, N, K, TILE: gl.constexpr, ORDER: gl.constexpr
):  # fmt: skip
    tensors = (a, b, b_narrow, c)
    buffers, barriers = make_ring(tensors, TILE)
    work = (tensors, buffers, barriers, (M, N, K))
    # What runs in which warps: four for each group, whose rows it owns, and one that copies.
    MANY: gl.constexpr = TILE.registers
    # fmt: off
    if TILE.groups == 1:
        gl.warp_specialize([
            (multiply, (0, work, TILE, ORDER)), (copy, (work, TILE, ORDER)),
        ], [1], [FEW])
    elif TILE.groups == 2:
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


@remembered
def matmul(
    a, b, out=None, *, block=BLOCK, group_m=GROUP_M, num_stages=STAGES, programs=None, down=False
):  # fmt: skip
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (rows, columns, K), the columns a width or two; see
    `kit.gluon.tile_of`. `group_m` is how many tiles a group has along M, `num_stages` the blocks of
    K that the ring holds, `programs` how many run, one for each multiprocessor if None. With `down`
    the columns of a tile are rows of C, as the transpose is computed. Where no descriptor fits a or
    b, it is first copied; where none fits out, the product is made in memory of its own and copied.
    For float32, and where `kit.gluon.can_run` says no, `triton_descriptors` multiplies, in blocks
    of its own. Raises TypeError or ValueError as `tensor_operands`, `tile_of`, `check_group` and
    `launch` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    tile = tile_of(block, num_stages)
    c = out
    if down:
        m, n, a, b, c = n, m, b.T, a.T, out.T
    tiles_n = cover(n, tile.width)
    check_group(group_m, tiles_n)
    programs = multiprocessors() if programs is None else positive("programs", programs)
    if not can_run(a):
        triton_descriptors.matmul(a, b, c)
        return out
    to = c if storable(c) or storable(c.T) else aligned_like(c)
    b = made_describable(b)  # once, for both widths
    a_tiles, a_transposed = described(a, tile.rows, tile.k)
    b_tiles, b_transposed = described(b, tile.k, tile.wide)
    b_narrow, _ = described(b, tile.k, tile.narrow) if tile.narrow else (b_tiles, False)
    pieces, c_transposed = described(to, tile.rows, tile.piece)
    programs = min(programs, cover(m, tile.height) * tiles_n)
    order = Order(group_m, a_transposed, b_transposed, c_transposed)
    arguments = (a_tiles, b_tiles, b_narrow, pieces, m, n, k, tile, order)
    launch(triton_gluon_kernel, (programs,), *arguments, num_warps=4)
    if to is not c:
        copied(c, to)
    return out

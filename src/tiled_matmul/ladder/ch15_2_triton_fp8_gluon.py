"""8-bit floats in Gluon: while one group of warps promotes its sums, others multiply.

Warps, buffers and barriers are those of `gluon_shapes`. What changed: a thread has two sets of
sums. Tensor cores fill one with a block of K, and then the thread adds it to the other, in full
float32. Groups of warps are rarely at the same point, so meanwhile the tensor cores work for
another group; that is why three groups share a tile. Scales of rows travel through the ring with
their tiles, so no thread waits for them.

This needs a GPU of compute capability 9.0. Elsewhere, and for scales of other kinds,
`triton_fp8` runs in its place.
Source: DeepSeek, DeepGEMM; NVIDIA, CUTLASS, "blockwise scaling"; Triton's tutorials on Gluon.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.float8 import Scales, by_k, float8_operands
from tiled_matmul.kit.gluon import FEW, place_of, start_copy, store, tiles
from tiled_matmul.kit.gluon8 import (
    BY_BLOCKS,
    FAST,
    PROMOTED,
    can_run,
    copied_scales,
    described8,
    end_scales,
    make_ring8,
    scales_in,
    tile8_of,
    zeros8,
)
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.plans import copied, remembered
from tiled_matmul.kit.programs import aligned_like, check_group, cover, launch
from tiled_matmul.ladder import triton_fp8

BLOCK = (192, 128), 5  # with the stages of its ring
ACROSS = (128, 128), 6  # where the scales of columns take registers
GROUP_M = 8
DTYPES = ("float8_e4m3fn", "float8_e5m2")


@gluon.jit
def copy8(work, TILE: gl.constexpr):
    tensors, buffers, barriers, sizes, steps = work
    a, b, c, scale_a, scale_b = tensors
    a_tiles, b_tiles, a_scales, b_scales, c_pieces = buffers
    full, empty = barriers
    M, N, K = sizes
    GROUPS: gl.constexpr = TILE.groups
    A_SCALES: gl.constexpr = TILE.mode == BY_BLOCKS and not TILE.a_square
    B_SCALES: gl.constexpr = TILE.mode == BY_BLOCKS and not TILE.b_square
    SCALES: gl.constexpr = A_SCALES * TILE.height + B_SCALES * TILE.width
    BYTES: gl.constexpr = (TILE.height + TILE.width) * TILE.k + 4 * SCALES
    step = 0
    number = tiles(M, N, TILE.height, TILE.width)
    for tile in range(gl.program_id(0), number, gl.num_programs(0)):
        top, left = place_of(tile, M, N, TILE.height, TILE.width, TILE.group_m)
        for k in range(0, K, TILE.k):
            slot, lap = step % TILE.stages, step // TILE.stages
            mbarrier.wait(empty.index(slot), lap % 2 ^ 1)
            arrived = full.index(slot)
            mbarrier.expect(arrived, BYTES)
            for group in gl.static_range(GROUPS):
                row, mine = top + group * TILE.rows, slot * GROUPS + group
                start_copy(a, row, k, arrived, a_tiles.index(mine), False)
                if A_SCALES:
                    start_copy(scale_a, k // TILE.k, row, arrived, a_scales.index(mine), False)
            start_copy(b, left, k, arrived, b_tiles.index(slot), False)
            if B_SCALES:
                start_copy(scale_b, k // TILE.k, left, arrived, b_scales.index(slot), False)
            step += 1


@gluon.jit
def scales_of(group: gl.constexpr, slot, k, row, left, acc, work, TILE: gl.constexpr):
    """Return what the sums of a block of K are multiplied by."""
    tensors, buffers, barriers, sizes, steps = work
    a, b, c, scale_a, scale_b = tensors
    a_tiles, b_tiles, a_scales, b_scales, c_pieces = buffers
    a_row, a_block, b_row, b_block = steps
    block = (k // TILE.k).to(gl.int64)
    if TILE.a_square:
        down = gl.load(scale_a + row // 128 * a_row + block * a_block)
    else:
        down = copied_scales(a_scales.index(slot * TILE.groups + group), acc, 1)
    if TILE.b_square:
        across = gl.load(scale_b + left // 128 * b_row + block * b_block)
    else:
        across = copied_scales(b_scales.index(slot), acc, 0)
    return down * across


@gluon.jit
def multiply8(group: gl.constexpr, work, TILE: gl.constexpr):
    tensors, buffers, barriers, sizes, steps = work
    a, b, c, scale_a, scale_b = tensors
    a_tiles, b_tiles, a_scales, b_scales, c_pieces = buffers
    full, empty = barriers
    M, N, K = sizes
    a_row, a_block, b_row, b_block = steps
    step = 0
    number = tiles(M, N, TILE.height, TILE.width)
    for tile in range(gl.program_id(0), number, gl.num_programs(0)):
        top, left = place_of(tile, M, N, TILE.height, TILE.width, TILE.group_m)
        row = top + group * TILE.rows
        acc = zeros8(TILE.rows, TILE.wide)
        for k in range(0, K, TILE.k):
            slot = step % TILE.stages
            mbarrier.wait(full.index(slot), step // TILE.stages % 2)
            a_tile = a_tiles.index(slot * TILE.groups + group)
            b_tile = b_tiles.index(slot).permute((1, 0))
            if TILE.mode == FAST:
                acc = warpgroup_mma(a_tile, b_tile, acc, is_async=True)
                acc = warpgroup_mma_wait(1, deps=[acc])
                # All products before this one are done: their buffers can be filled again.
                mbarrier.arrive(empty.index((step + TILE.stages - 1) % TILE.stages), pred=k > 0)
            else:
                none = zeros8(TILE.rows, TILE.wide)
                part = warpgroup_mma(a_tile, b_tile, none, use_acc=False, is_async=True)
                if TILE.mode == BY_BLOCKS:
                    scale = scales_of(group, slot, k, row, left, acc, work, TILE)
                    part = warpgroup_mma_wait(0, deps=[part])
                    acc += part * scale
                else:
                    part = warpgroup_mma_wait(0, deps=[part])
                    acc += part
                mbarrier.arrive(empty.index(slot))
            step += 1
        if TILE.mode == FAST:
            acc = warpgroup_mma_wait(0, deps=[acc])
            mbarrier.arrive(empty.index((step + TILE.stages - 1) % TILE.stages))
        if TILE.mode != BY_BLOCKS:
            acc *= end_scales(scale_a, row, M, a_row, acc, 1)
            acc *= end_scales(scale_b, left, N, b_row, acc, 0)
        store(acc, c, row, left, c_pieces.index(group), False)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["M", "N", "K", "a_row", "a_block", "b_row", "b_block"])
def triton_fp8_gluon_kernel(
    a, b, c, scale_a, scale_b, M, N, K, a_row, a_block, b_row, b_block, TILE: gl.constexpr
):  # fmt: skip
    tensors = (a, b, c, scale_a, scale_b)
    buffers, barriers = make_ring8(tensors, TILE)
    work = (tensors, buffers, barriers, (M, N, K), (a_row, a_block, b_row, b_block))
    MANY: gl.constexpr = TILE.registers
    # fmt: off
    if TILE.groups == 1:
        gl.warp_specialize([
            (multiply8, (0, work, TILE)), (copy8, (work, TILE)),
        ], [1], [FEW])
    elif TILE.groups == 2:
        gl.warp_specialize([
            (multiply8, (0, work, TILE)), (multiply8, (1, work, TILE)), (copy8, (work, TILE)),
        ], [4, 1], [MANY, FEW])
    else:
        gl.warp_specialize([
            (multiply8, (0, work, TILE)), (multiply8, (1, work, TILE)),
            (multiply8, (2, work, TILE)), (copy8, (work, TILE)),
        ], [4, 4, 1], [MANY, MANY, FEW])
    # fmt: on


@remembered
def matmul(
    a, b, out=None, *, scale_a, scale_b, out_dtype=None, fast=False, block=None,
    num_stages=None, group_m=GROUP_M, programs=None,
):  # fmt: skip
    """Return (a · scale_a) (M, K) · (b · scale_b) (K, N) as (M, N), as `triton_fp8` does.

    `block` is (rows, columns), see `kit.gluon8.tile8_of`, and `num_stages` are the blocks of 128 of
    K that the ring holds; None is what BLOCK says, or ACROSS for columns with scales of blocks.
    `group_m` is how many tiles a group has along M, `programs` how many run, one for each
    multiprocessor if None. Where no descriptor fits out, the product is made in memory of its own
    and copied. Where `kit.gluon8.can_run` says no, and for scales that only on one side are those
    of blocks, `triton_fp8` multiplies, in tiles of its own. Raises TypeError or ValueError as
    `triton_fp8`, `tile8_of`, `check_group` and `launch` do.
    """
    m, n, k, out = float8_operands(a, b, out, out_dtype)
    a_scales = Scales.of("scale_a", scale_a, m, k, out)
    b_scales = Scales.of("scale_b", scale_b, n, k, out)
    by_blocks = a_scales.by_blocks or b_scales.by_blocks
    mode = BY_BLOCKS if by_blocks else FAST if fast else PROMOTED
    squares = a_scales.square, b_scales.square
    usual_block, usual_stages = ACROSS if by_blocks and not b_scales.square else BLOCK
    block = usual_block if block is None else block
    num_stages = usual_stages if num_stages is None else num_stages
    tile = tile8_of(block, num_stages, group_m, mode.value, out.element_size(), squares)
    check_group(group_m, cover(n, tile.width))
    programs = multiprocessors() if programs is None else positive("programs", programs)
    both = a_scales.by_blocks == b_scales.by_blocks and squares != (True, True)
    if not can_run() or not both or not (by_blocks or squares == (False, False)):
        scales = {"scale_a": scale_a, "scale_b": scale_b}
        return triton_fp8.matmul(a, b, out, **scales, fast=fast, block=(64, 128, 128))
    to = out if storable(out) else aligned_like(out)
    arguments = (
        described8(by_k(a), tile.rows, tile.k),
        described8(by_k(b.T), tile.wide, tile.k),
        described8(to, tile.rows, tile.piece),
        scales_in(scale_a.T if by_blocks else scale_a, a_scales, tile.rows),
        scales_in(scale_b, b_scales, tile.wide),
        *(m, n, k, a_scales.row, a_scales.block, b_scales.row, b_scales.block, tile),
    )
    programs = min(programs, cover(m, tile.height) * cover(n, tile.width))
    launch(triton_fp8_gluon_kernel, (programs,), *arguments, num_warps=4)
    return out if to is out else copied(out, to)

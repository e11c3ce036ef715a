"""Persistent programs in Gluon: the ring goes on from one tile of C to the next.

As many programs run as there are multiprocessors, and each takes every so many-th tile. What
changed: a loop over tiles around each role's loop over K, and a step that counts on. So the warp
that copies is at the next tile while the sums of this one are stored, and the tensor cores wait
only for what is not yet there.

In 16-bit floats on a GPU of compute capability 9.0; elsewhere `triton_descriptors` runs.
Source: Triton's tutorials on Gluon; NVIDIA, CUTLASS, "persistent kernels".
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
    async_load,
    check_rings,
    hopper,
    make_barriers,
    of_rows,
    place_of,
    store,
    tiles,
    zeros,
)
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.plans import copied, remembered
from tiled_matmul.kit.programs import aligned_like, check_group, cover, launch
from tiled_matmul.ladder import triton_descriptors

BLOCK = (128, 256, 64)
GROUPS = gl.constexpr(2)
PIECE = 64  # columns of C that a group stores at a time, at most
STAGES = 4
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@gluon.jit
def copy(a, b, work, GROUP_M: gl.constexpr):
    M, N, K, a_tiles, b_tiles, full, empty = work
    STAGES: gl.constexpr = b_tiles.shape[0]
    ROWS: gl.constexpr = a.block_shape[0]
    BLOCK_K: gl.constexpr = a.block_shape[1]
    BYTES: gl.constexpr = 2 * (GROUPS * ROWS + b.block_shape[1]) * BLOCK_K
    HEIGHT: gl.constexpr = GROUPS * ROWS
    WIDTH: gl.constexpr = b.block_shape[1]
    step = 0
    for tile in range(gl.program_id(0), tiles(M, N, HEIGHT, WIDTH), gl.num_programs(0)):
        top, left = place_of(tile, M, N, HEIGHT, WIDTH, GROUP_M)
        for k in range(0, K, BLOCK_K):
            slot, lap = step % STAGES, step // STAGES
            mbarrier.wait(empty.index(slot), lap % 2 ^ 1)
            mbarrier.expect(full.index(slot), BYTES)
            for group in gl.static_range(GROUPS):
                to = a_tiles.index(slot * GROUPS + group)
                async_load(a, [top + group * ROWS, k], full.index(slot), to)
            async_load(b, [k, left], full.index(slot), b_tiles.index(slot))
            step += 1


@gluon.jit
def multiply(group: gl.constexpr, c, c_pieces, work, GROUP_M: gl.constexpr):
    M, N, K, a_tiles, b_tiles, full, empty = work
    STAGES: gl.constexpr = b_tiles.shape[0]
    ROWS: gl.constexpr = a_tiles.shape[1]
    HEIGHT: gl.constexpr = GROUPS * ROWS
    WIDTH: gl.constexpr = b_tiles.shape[2]
    step = 0
    for tile in range(gl.program_id(0), tiles(M, N, HEIGHT, WIDTH), gl.num_programs(0)):
        top, left = place_of(tile, M, N, HEIGHT, WIDTH, GROUP_M)
        acc = zeros(ROWS, WIDTH)
        for k in range(0, K, a_tiles.shape[2]):
            slot, lap = step % STAGES, step // STAGES
            mbarrier.wait(full.index(slot), lap % 2)
            a_tile, b_tile = a_tiles.index(slot * GROUPS + group), b_tiles.index(slot)
            acc = warpgroup_mma(a_tile, b_tile, acc, is_async=True)
            acc = warpgroup_mma_wait(1, deps=[acc])
            before = (step + STAGES - 1) % STAGES
            mbarrier.arrive(empty.index(before), pred=k > 0)
            step += 1
        acc = warpgroup_mma_wait(0, deps=[acc])
        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES))
        store(acc, c, top + group * ROWS, left, c_pieces.index(group), False)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["M", "N", "K"])
def gluon_persistent_kernel(a, b, c, M, N, K, STAGES: gl.constexpr, GROUP_M: gl.constexpr):
    PARTS: gl.constexpr = STAGES * GROUPS  # of A: each group has its own
    a_tiles = gl.allocate_shared_memory(a.dtype, [PARTS] + a.block_shape, a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    c_pieces = gl.allocate_shared_memory(c.dtype, [GROUPS] + c.block_shape, c.layout)
    full = make_barriers(STAGES, count=1)
    empty = make_barriers(STAGES, count=GROUPS)
    work = (M, N, K, a_tiles, b_tiles, full, empty)
    gl.warp_specialize(
        [
            (multiply, (0, c, c_pieces, work, GROUP_M)),
            (multiply, (1, c, c_pieces, work, GROUP_M)),
            (copy, (a, b, work, GROUP_M)),
        ],
        [4, 1],
        [240, 24],
    )


@remembered
def matmul(a, b, out=None, *, block=BLOCK, group_m=GROUP_M, num_stages=STAGES, programs=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), `group_m` how many tiles
    a group has along M, `num_stages` the steps along K that the ring holds, `programs` how
    many run, one for each multiprocessor if None. Where no descriptor fits the rows of a or b, it
    is first copied; where none fits out's, the product is made in memory of its own and copied. For
    float32, and where `kit.gluon.hopper` says no, `triton_descriptors` multiplies, in blocks of its
    own. Raises TypeError or ValueError as `tensor_operands`, `check_rings` and `check_group` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    rows, piece = check_rings(block, num_stages, GROUPS.value, PIECE, fewest=2)
    check_group(group_m, cover(n, block[1]))
    programs = multiprocessors() if programs is None else positive("programs", programs)
    if not hopper(a):
        return triton_descriptors.matmul(a, b, out)
    c = out if storable(out) else aligned_like(out)
    tiles_a, tiles_b = of_rows(a, rows, block[2]), of_rows(b, block[2], block[1])
    tiles_c = of_rows(c, rows, piece)
    programs = min(programs, cover(m, block[0]) * cover(n, block[1]))
    arguments = (tiles_a, tiles_b, tiles_c, m, n, k, num_stages, group_m)
    launch(gluon_persistent_kernel, (programs,), *arguments, num_warps=4)
    return out if c is out else copied(out, c)

"""A cluster of two blocks: a tile of B is copied once, into the shared memory of both.

Two blocks of one cluster own tiles of C below each other, which need the same tiles of B. What
changed: the copy of B is a multicast. The cluster's first block starts it, the copy engine fills a
buffer in each block, and signals a barrier in each. So the L2 is asked half as often for B. The
price: the first block fills a buffer of the other one, so it waits until the roles of both blocks
have left it. `shared` is the barrier for that: all of them arrive at the first block's.

A program is a cluster, and a tile's rows are shared among its blocks: `cga_layout` says how. That
needs Triton 3.8. In 16-bit floats on a GPU of compute capability 9.0; elsewhere
`triton_descriptors` runs, and with an older Triton `gluon_persistent`.
Source: Triton's tutorials on Gluon; NVIDIA, PTX ISA, "cp.async.bulk.tensor", multicast.
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
from tiled_matmul.kit.clusters import (
    at_once,
    check_cluster,
    leave_together,
    make_cluster_barriers,
    sums_of,
)
from tiled_matmul.kit.gluon import (
    async_load,
    check_rings,
    hopper,
    multicasts,
    of_rows,
    place_of,
    store,
    tiles,
)
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.plans import copied, remembered
from tiled_matmul.kit.programs import aligned_like, check_group, cover, launch
from tiled_matmul.ladder import gluon_persistent, triton_descriptors

BLOCK = (128, 256, 64)
GROUPS = gl.constexpr(2)
BLOCKS = 2  # of a cluster
PIECE = 64  # columns of C that a group stores at a time, at most
STAGES = 4
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@gluon.jit
def copy(a, b, work, GROUP_M: gl.constexpr):
    M, N, K, a_tiles, b_tiles, full, empty, shared = work
    STAGES: gl.constexpr = b_tiles.shape[0]
    ROWS: gl.constexpr = a.block_shape[0]
    BLOCK_K: gl.constexpr = a.block_shape[1]
    # Of a block: its share of A's rows, and all of B's tile.
    BYTES: gl.constexpr = 2 * (GROUPS * ROWS // gl.num_ctas() + b.block_shape[1]) * BLOCK_K
    HEIGHT: gl.constexpr = GROUPS * ROWS
    WIDTH: gl.constexpr = b.block_shape[1]
    step = 0
    for tile in range(gl.program_id(0), tiles(M, N, HEIGHT, WIDTH), gl.num_programs(0)):
        top, left = place_of(tile, M, N, HEIGHT, WIDTH, GROUP_M)
        for k in range(0, K, BLOCK_K):
            slot, lap = step % STAGES, step // STAGES
            mbarrier.wait(empty.index(slot), lap % 2 ^ 1)  # this block's groups
            mbarrier.wait(shared.index(slot), lap % 2 ^ 1)  # of both blocks
            mbarrier.expect(full.index(slot), BYTES)
            for group in gl.static_range(GROUPS):
                to = a_tiles.index(slot * GROUPS + group)
                async_load(a, [top + group * ROWS, k], full.index(slot), to)
            async_load(b, [k, left], full.index(slot), b_tiles.index(slot), multicast=True)
            step += 1


@gluon.jit
def multiply(
    group: gl.constexpr, c, c_pieces, work, SUMS: gl.constexpr, GROUP_M: gl.constexpr
):  # fmt: skip
    M, N, K, a_tiles, b_tiles, full, empty, shared = work
    STAGES: gl.constexpr = b_tiles.shape[0]
    ROWS: gl.constexpr = a_tiles.shape[1]
    HEIGHT: gl.constexpr = GROUPS * ROWS
    WIDTH: gl.constexpr = b_tiles.shape[2]
    step = 0
    for tile in range(gl.program_id(0), tiles(M, N, HEIGHT, WIDTH), gl.num_programs(0)):
        top, left = place_of(tile, M, N, HEIGHT, WIDTH, GROUP_M)
        acc = gl.zeros((ROWS, WIDTH), gl.float32, SUMS)
        for k in range(0, K, a_tiles.shape[2]):
            slot, lap = step % STAGES, step // STAGES
            mbarrier.wait(full.index(slot), lap % 2)
            a_tile, b_tile = a_tiles.index(slot * GROUPS + group), b_tiles.index(slot)
            acc = warpgroup_mma(a_tile, b_tile, acc, is_async=True)
            acc = warpgroup_mma_wait(1, deps=[acc])
            before = (step + STAGES - 1) % STAGES
            mbarrier.arrive(empty.index(before), pred=k > 0)
            mbarrier.arrive(shared.index(before), pred=k > 0)
            step += 1
        acc = warpgroup_mma_wait(0, deps=[acc])
        before = (step + STAGES - 1) % STAGES
        mbarrier.arrive(empty.index(before))
        mbarrier.arrive(shared.index(before))
        store(acc, c, top + group * ROWS, left, c_pieces.index(group), False)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["M", "N", "K"])
def gluon_cluster_kernel(
    a, b, c, M, N, K, STAGES: gl.constexpr, GROUP_M: gl.constexpr,
    CLUSTER: gl.constexpr, SUMS: gl.constexpr,
):  # fmt: skip
    PARTS: gl.constexpr = STAGES * GROUPS  # of A: each group has its own
    a_tiles = gl.allocate_shared_memory(a.dtype, [PARTS] + a.block_shape, a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    c_pieces = gl.allocate_shared_memory(c.dtype, [GROUPS] + c.block_shape, c.layout)
    full = make_cluster_barriers(STAGES, 1, CLUSTER.blocks, CLUSTER.own)
    empty = make_cluster_barriers(STAGES, GROUPS, CLUSTER.blocks, CLUSTER.own)
    shared = make_cluster_barriers(STAGES, GROUPS, 1, CLUSTER.shared)
    work = (M, N, K, a_tiles, b_tiles, full, empty, shared)
    gl.warp_specialize(
        [
            (multiply, (0, c, c_pieces, work, SUMS, GROUP_M)),
            (multiply, (1, c, c_pieces, work, SUMS, GROUP_M)),
            (copy, (a, b, work, GROUP_M)),
        ],
        [4, 1],
        [240, 24],
    )
    leave_together()  # others may still arrive at this block's barriers


@remembered
def matmul(
    a, b, out=None, *, block=BLOCK, group_m=GROUP_M, num_stages=STAGES, blocks=BLOCKS, programs=None
):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K) of one block of threads,
    of which a cluster has `blocks`, a power of two up to 16, one below the other. `group_m` is how
    many of the clusters' tiles a group has along M, `num_stages` the steps along K that the ring
    holds, `programs` how many clusters run, None as many as there is room for. Where
    no descriptor fits the rows of a or b, it is first copied; where none fits out's, the product is
    made in memory of its own and copied. For float32, and where `kit.gluon.hopper` says no,
    `triton_descriptors` multiplies, in blocks of its own; where `kit.gluon.multicasts` says no,
    `gluon_persistent`. Raises TypeError or ValueError as `tensor_operands`, `check_rings`,
    `check_group` and `check_cluster` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    cluster = check_cluster(blocks)
    rows, piece = check_rings(block, num_stages, GROUPS.value, PIECE, fewest=2)
    rows *= blocks
    check_group(group_m, cover(n, block[1]))
    programs = at_once(blocks, multiprocessors()) if programs is None else programs
    programs = positive("programs", programs)
    if not hopper(a):
        return triton_descriptors.matmul(a, b, out)
    if not multicasts():
        return gluon_persistent.matmul(a, b, out, block=block, num_stages=num_stages)
    c = out if storable(out) else aligned_like(out)
    tiles_a = of_rows(a, rows, block[2], cluster.stacked)
    tiles_b = of_rows(b, block[2], block[1], cluster.same)
    tiles_c = of_rows(c, rows, piece, cluster.stacked)
    programs = min(programs, cover(m, block[0] * blocks) * cover(n, block[1]))
    sums = sums_of(block[1], cluster.stacked)
    arguments = (tiles_a, tiles_b, tiles_c, m, n, k, num_stages, group_m, cluster, sums)
    launch(gluon_cluster_kernel, (programs,), *arguments, num_warps=4, num_ctas=blocks)
    return out if c is out else copied(out, c)

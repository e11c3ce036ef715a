"""The same ring on Blackwell: products are started by one warp, and their sums have a memory.

Compute capability 10.0 has tensor memory: 128 rows of 512 columns of 32 bits beside the tensor
cores of each multiprocessor. What changed from `gluon_specialised`: sums lie there, and no warp
holds them. So one warp starts all products; each is over when its barrier says so, which is the
stage's `empty` barrier. When the last one is done, four warps load the sums and store C.

Compiled and interpreted in this course, and run on no GPU so far. In 16-bit floats on a GPU of
compute capability 10.0; elsewhere `gluon_specialised` runs.
Source: Triton's tutorials on Gluon; NVIDIA, PTX ISA, "tcgen05".
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    tcgen05_commit,
    tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.gluon import (
    async_load,
    async_store,
    check_rings,
    make_barriers,
    of_rows,
    place_of,
)
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.plans import copied, remembered
from tiled_matmul.kit.programs import aligned_like, check_group, cover, launch
from tiled_matmul.kit.tensor_memory import ROWS, blackwell, load_sums
from tiled_matmul.ladder import gluon_specialised

BLOCK = (128, 128, 64)
STAGES = 5
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@gluon.jit
def copy(a, b, work):
    top, left, K, a_tiles, b_tiles, full, empty = work
    STAGES: gl.constexpr = a_tiles.shape[0]
    BLOCK_K: gl.constexpr = a.block_shape[1]
    BYTES: gl.constexpr = 2 * (a.block_shape[0] + b.block_shape[1]) * BLOCK_K
    for step in range(gl.cdiv(K, BLOCK_K)):
        slot, lap = step % STAGES, step // STAGES
        mbarrier.wait(empty.index(slot), lap % 2 ^ 1)
        mbarrier.expect(full.index(slot), BYTES)
        async_load(a, [top, step * BLOCK_K], full.index(slot), a_tiles.index(slot))
        async_load(b, [step * BLOCK_K, left], full.index(slot), b_tiles.index(slot))


@gluon.jit
def multiply(sums, done, work):
    top, left, K, a_tiles, b_tiles, full, empty = work
    STAGES: gl.constexpr = a_tiles.shape[0]
    for step in range(gl.cdiv(K, a_tiles.shape[2])):
        slot, lap = step % STAGES, step // STAGES
        mbarrier.wait(full.index(slot), lap % 2)
        a_tile, b_tile = a_tiles.index(slot), b_tiles.index(slot)
        tcgen05_mma(a_tile, b_tile, sums, use_acc=step > 0, mbarriers=[empty.index(slot)])
    tcgen05_commit(done)  # an arrival when all products so far are over


@gluon.jit
def store(c, c_tile, sums, done, work):
    top, left, K, a_tiles, b_tiles, full, empty = work
    mbarrier.wait(done, 0)
    c_tile.store(load_sums(sums).to(c.dtype))
    fence_async_shared()
    async_store(c, [top, left], c_tile)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["M", "N", "K"])
def gluon_blackwell_kernel(a, b, c, M, N, K, STAGES: gl.constexpr, GROUP_M: gl.constexpr):
    BLOCK_M: gl.constexpr = a.block_shape[0]
    BLOCK_N: gl.constexpr = b.block_shape[1]
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_shape, a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    c_tile = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    COLUMNS: gl.constexpr = TensorMemoryLayout([BLOCK_M, BLOCK_N], col_stride=1)
    sums = allocate_tensor_memory(gl.float32, [BLOCK_M, BLOCK_N], COLUMNS)
    full = make_barriers(STAGES, count=1)
    empty = make_barriers(STAGES, count=1)
    done = make_barriers(1, count=1).index(0)
    top, left = place_of(gl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    work = (top, left, K, a_tiles, b_tiles, full, empty)
    gl.warp_specialize(
        [
            (store, (c, c_tile, sums, done, work)),
            (copy, (a, b, work)),
            (multiply, (sums, done, work)),
        ],
        [1, 1],
        [24, 24],
    )


@remembered
def matmul(a, b, out=None, *, block=BLOCK, group_m=GROUP_M, num_stages=STAGES):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), BLOCK_M of 128;
    `group_m` is how many tiles a group has along M, `num_stages` the steps along K that the ring
    holds. Where no descriptor fits the rows of a or b, it is first copied; where none fits out's,
    the product is made in memory of its own and copied. For float32, and where
    `kit.tensor_memory.blackwell` says no, `gluon_specialised` multiplies, in blocks of its own.
    Raises TypeError or ValueError as `tensor_operands`, `check_rings` and `check_group` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    check_rings(block, num_stages)
    if block[0] != ROWS:
        raise ValueError(f"tensor memory has {ROWS} rows: BLOCK_M must be that, got {block[0]}")
    check_group(group_m, cover(n, block[1]))
    if not blackwell(a):
        return gluon_specialised.matmul(a, b, out)
    c = out if storable(out) else aligned_like(out)
    tiles_a, tiles_b = of_rows(a, block[0], block[2]), of_rows(b, block[2], block[1])
    tiles_c = of_rows(c, block[0], block[1])
    programs = cover(m, block[0]) * cover(n, block[1])
    arguments = (tiles_a, tiles_b, tiles_c, m, n, k, num_stages, group_m)
    launch(gluon_blackwell_kernel, (programs,), *arguments, num_warps=4)
    return out if c is out else copied(out, c)

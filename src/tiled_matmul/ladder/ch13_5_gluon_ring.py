"""A ring of stages: copies run ahead of the products, and a barrier for each stage says so.

Shared memory has room for STAGES tiles of A and of B. What changed: the copies for the first stages
start before the loop, and each step starts those that are STAGES - 1 steps ahead. A product runs
while the next one is started; when `warpgroup_mma_wait(1)` returns, the product before is done, and
its stage may be filled again. A stage is filled again and again, so its barrier completes phase
after phase, and a wait names the phase by its parity: that of the lap around the ring.

In 16-bit floats on a GPU of compute capability 9.0; elsewhere `triton_descriptors` runs.
Source: Triton's tutorials on Gluon; NVIDIA, CUTLASS, "multistage" kernels.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.gluon import (
    async_load,
    async_store,
    check_rings,
    hopper,
    make_barriers,
    of_rows,
    place_of,
    zeros,
)
from tiled_matmul.kit.layouts import storable
from tiled_matmul.kit.plans import copied, remembered
from tiled_matmul.kit.programs import aligned_like, check_group, cover, launch
from tiled_matmul.ladder import triton_descriptors

BLOCK = (128, 128, 64)
STAGES = 4
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@gluon.jit
def fetch(step, steps, a, b, top, left, a_tiles, b_tiles, full):
    STAGES: gl.constexpr = a_tiles.shape[0]
    BLOCK_K: gl.constexpr = a.block_shape[1]
    BYTES: gl.constexpr = 2 * (a.block_shape[0] + b.block_shape[1]) * BLOCK_K
    slot, there = step % STAGES, step < steps
    mbarrier.expect(full.index(slot), BYTES, pred=there)
    k = step * BLOCK_K
    async_load(a, [top, k], full.index(slot), a_tiles.index(slot), pred=there)
    async_load(b, [k, left], full.index(slot), b_tiles.index(slot), pred=there)


@gluon.jit(do_not_specialize=["M", "N", "K"])
def gluon_ring_kernel(a, b, c, M, N, K, STAGES: gl.constexpr, GROUP_M: gl.constexpr):
    BLOCK_M: gl.constexpr = a.block_shape[0]
    BLOCK_N: gl.constexpr = b.block_shape[1]
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_shape, a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    c_tile = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    full = make_barriers(STAGES, count=1)
    top, left = place_of(gl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    acc = zeros(BLOCK_M, BLOCK_N)
    steps = gl.cdiv(K, a.block_shape[1])
    for step in gl.static_range(STAGES - 1):
        fetch(step, steps, a, b, top, left, a_tiles, b_tiles, full)
    for step in range(steps):
        slot, lap = step % STAGES, step // STAGES
        mbarrier.wait(full.index(slot), lap % 2)
        acc = warpgroup_mma(a_tiles.index(slot), b_tiles.index(slot), acc, is_async=True)
        acc = warpgroup_mma_wait(1, deps=[acc])  # the one before: its stage is free
        fetch(step + STAGES - 1, steps, a, b, top, left, a_tiles, b_tiles, full)
    acc = warpgroup_mma_wait(0, deps=[acc])
    c_tile.store(acc.to(c.dtype))
    fence_async_shared()
    async_store(c, [top, left], c_tile)
    tma.store_wait(0)


@remembered
def matmul(a, b, out=None, *, block=BLOCK, group_m=GROUP_M, num_stages=STAGES):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), `group_m` how many tiles
    a group has along M, `num_stages` the tiles of A that the ring holds, two or more. Where no
    descriptor fits the rows of a or b, it is first copied; where none fits out's, the product is
    made in memory of its own and copied. For float32, and where `kit.gluon.hopper` says no,
    `triton_descriptors` multiplies, in blocks of its own. Raises TypeError or ValueError as
    `tensor_operands`, `check_rings` and `check_group` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    check_rings(block, num_stages, fewest=2)
    check_group(group_m, cover(n, block[1]))
    if not hopper(a):
        return triton_descriptors.matmul(a, b, out)
    c = out if storable(out) else aligned_like(out)
    tiles_a, tiles_b = of_rows(a, block[0], block[2]), of_rows(b, block[2], block[1])
    tiles_c = of_rows(c, block[0], block[1])
    programs = cover(m, block[0]) * cover(n, block[1])
    arguments = (tiles_a, tiles_b, tiles_c, m, n, k, num_stages, group_m)
    launch(gluon_ring_kernel, (programs,), *arguments, num_warps=4)
    return out if c is out else copied(out, c)

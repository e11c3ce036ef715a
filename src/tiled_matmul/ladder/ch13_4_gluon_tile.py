"""One tile in Gluon: a copy, a wait, a product, and nothing hidden.

A program has a tile of C, and one tile of A and of B in shared memory. The copy engine fills both
and signals a barrier; four warps wait for it, and start a product on the tensor cores. They wait
for that, too, before the next copy may overwrite what it reads. So nothing overlaps, and what
Triton's compiler did in the rungs before stands on the page: memory, layouts, barriers and waits.

In 16-bit floats on a GPU of compute capability 9.0; elsewhere `triton_descriptors` runs.
Source: Triton's tutorials on Gluon; NVIDIA, PTX ISA, "mbarrier" and "wgmma".
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
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@gluon.jit(do_not_specialize=["M", "N", "K"])
def gluon_tile_kernel(a, b, c, M, N, K, GROUP_M: gl.constexpr):
    BLOCK_M: gl.constexpr = a.block_shape[0]
    BLOCK_K: gl.constexpr = a.block_shape[1]
    BLOCK_N: gl.constexpr = b.block_shape[1]
    BYTES: gl.constexpr = 2 * (BLOCK_M + BLOCK_N) * BLOCK_K
    a_tile = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    b_tile = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    c_tile = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    full = make_barriers(1, count=1).index(0)
    top, left = place_of(gl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    acc = zeros(BLOCK_M, BLOCK_N)
    phase = 0
    for k in range(0, K, BLOCK_K):
        mbarrier.expect(full, BYTES)
        async_load(a, [top, k], full, a_tile)
        async_load(b, [k, left], full, b_tile)
        mbarrier.wait(full, phase)
        acc = warpgroup_mma(a_tile, b_tile, acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=[acc])
        phase = phase ^ 1
    c_tile.store(acc.to(c.dtype))
    fence_async_shared()
    async_store(c, [top, left], c_tile)
    tma.store_wait(0)


@remembered
def matmul(a, b, out=None, *, block=BLOCK, group_m=GROUP_M):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), `group_m` how many tiles
    a group has along M. Where no descriptor fits the rows of a or b, it is first copied; where none
    fits out's, the product is made in memory of its own and copied. For float32, and where
    `kit.gluon.hopper` says no, `triton_descriptors` multiplies, in blocks of its own. Raises
    TypeError or ValueError as `tensor_operands`, `check_rings` and `check_group` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    check_rings(block, 1)
    check_group(group_m, cover(n, block[1]))
    if not hopper(a):
        return triton_descriptors.matmul(a, b, out)
    c = out if storable(out) else aligned_like(out)
    tiles_a, tiles_b = of_rows(a, block[0], block[2]), of_rows(b, block[2], block[1])
    tiles_c = of_rows(c, block[0], block[1])
    programs = cover(m, block[0]) * cover(n, block[1])
    arguments = (tiles_a, tiles_b, tiles_c, m, n, k, group_m)
    launch(gluon_tile_kernel, (programs,), *arguments, num_warps=4)
    return out if c is out else copied(out, c)

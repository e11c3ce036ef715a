"""Tile views: "take this tile, copy it, wait, multiply", without an index into a or b.

A thread owns C[row, col] of its block's tile; x is the column. What changed from `cuda_tile_hand`:
`tile(…)[i, j]` computes the corners and edges of a tile, and one call copies it.
Source: Modular, Mojo GPU puzzles, "Tiled matrix multiplication", the idiomatic version.
"""

from numba import cuda

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.intrinsics import commit_copies, wait_copies
from tiled_matmul.kit.launch import covering_grid, launch, need_capability
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.tile_view import copy_tile_async, tile
from tiled_matmul.kit.unsigned import unsigned

TILE = 32
DTYPES = ("float32", "float64", "int32")
MAX_TILE = 32  # TILE² threads are a block


@cuda.jit
@unsigned
def cuda_tile_view_kernel(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    c_tile = tile(c, TILE, TILE)[cuda.blockIdx.y, cuda.blockIdx.x]
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    acc = c.dtype.type(0)
    for step in range((a.shape[1] + TILE - 1) // TILE):
        copy_tile_async(a_tile, tile(a, TILE, TILE)[cuda.blockIdx.y, step], (TILE, TILE))
        copy_tile_async(b_tile, tile(b, TILE, TILE)[step, cuda.blockIdx.x], (TILE, TILE))
        commit_copies()
        wait_copies(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if y < c_tile.shape[0] and x < c_tile.shape[1]:
        c_tile[y, x] = acc


@remembered
def matmul(a, b, out=None, tile=TILE):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32, float64 or int32.

    `tile` is the tile's edge, 1 to 32 elements; a block has tile² threads. int32 wraps around.
    Needs compute capability 8.0. Raises TypeError or ValueError as `positive`, `covering_grid`,
    `tensor_operands` and `need_capability` do.
    """
    positive("tile", tile, MAX_TILE)
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    need_capability((8, 0), "asynchronous copies")
    kernel = with_constants(cuda_tile_view_kernel, TILE=tile)
    launch(kernel, covering_grid(n, m, (tile, tile)), (tile, tile), a, b, out)
    return out

"""Asynchronous copies, with every index written out.

A thread owns C[row, col]; x is the column. What changed from the shared tiles: each thread starts
two copies from global to shared memory that bypass its registers, and waits for them at once, so
nothing overlaps yet. Beyond the edge of a matrix nothing is read and a zero is written.
Source: NVIDIA, CUDA C++ Programming Guide, "Asynchronous Data Copies"; PTX ISA, "cp.async".
"""

from numba import cuda

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.intrinsics import commit_copies, copy_async, wait_copies
from tiled_matmul.kit.launch import covering_grid, launch, need_capability
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

TILE = 32
DTYPES = ("float32", "float64", "int32")
MAX_TILE = 32  # TILE² threads are a block


@cuda.jit
@unsigned
def cuda_tile_hand_kernel(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    acc = c.dtype.type(0)
    for start in range(0, a.shape[1], TILE):
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        copy_async(a_tile, (y, x), a, (row, start + x), in_a)
        copy_async(b_tile, (y, x), b, (start + y, col), in_b)
        commit_copies()
        wait_copies(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


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
    kernel = with_constants(cuda_tile_hand_kernel, TILE=tile)
    launch(kernel, covering_grid(n, m, (tile, tile)), (tile, tile), a, b, out)
    return out

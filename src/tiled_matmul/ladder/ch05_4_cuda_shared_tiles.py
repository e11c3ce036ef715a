"""Tiles in shared memory: a block loads each element once and its threads share it.

A thread owns C[row, col]; x is the column. What changed from the rung below: K is walked tile by
tile, and for each tile every thread fetches one element of A and one of B for the whole block. Each
of them is then read TILE times from shared memory, so global memory is asked for 2·M·N·K/TILE
elements in place of 2·M·N·K. Elements past the edges are taken as zeros, which add nothing.
Source: Kirk & Hwu, Programming Massively Parallel Processors; NVIDIA, CUDA C++ Programming Guide,
"Shared Memory".
"""

from numba import cuda

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.launch import covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

TILE = 16
DTYPES = ("float32", "float64", "int32")
MAX_TILE = 32  # TILE² threads are a block


@cuda.jit
@unsigned
def cuda_shared_tiles_kernel(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    zero = c.dtype.type(0)
    acc = zero
    for start in range(0, a.shape[1], TILE):
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        a_tile[y, x] = a[row, start + x] if in_a else zero
        b_tile[y, x] = b[start + y, col] if in_b else zero
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
    Raises TypeError or ValueError as `positive`, `covering_grid` and `tensor_operands` do.
    """
    positive("tile", tile, MAX_TILE)
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    block = (tile, tile)
    kernel = with_constants(cuda_shared_tiles_kernel, TILE=tile)
    launch(kernel, covering_grid(n, m, block), block, a, b, out)
    return out

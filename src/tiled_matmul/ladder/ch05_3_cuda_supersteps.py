"""Shared tiles in supersteps: every step of the work is closed by a barrier of its own.

A thread owns C[row, col]; x is the column. Matrices and tiles are flat, sizes are arguments. What
changed from the shared tiles: loading A's tile and loading B's tile are two steps, so a tile takes
three barriers. The barrier between the two loads orders nothing that needs an order.
Source: Sarek, GPU Computing for OCaml, "Matrix Multiplication (Tiled)", written anew.
"""

from numba import cuda

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.launch import covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

TILE = 16
ELEMENTS = 256
DTYPES = ("float32", "float64", "int32")


@cuda.jit
@unsigned
def cuda_supersteps_kernel(a, b, c, m, n, k):
    tile_a = cuda.shared.array(ELEMENTS, a.dtype)
    tile_b = cuda.shared.array(ELEMENTS, b.dtype)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row = ty + cuda.blockDim.y * cuda.blockIdx.y
    col = tx + cuda.blockDim.x * cuda.blockIdx.x
    acc = c.dtype.type(0)
    for t in range((k + TILE - 1) // TILE):
        # Superstep 1: load a tile of A
        a_col = t * TILE + tx
        if row < m and a_col < k:
            tile_a[ty * TILE + tx] = a[row * k + a_col]
        else:
            tile_a[ty * TILE + tx] = 0
        cuda.syncthreads()
        # Superstep 2: load a tile of B
        b_row = t * TILE + ty
        if b_row < k and col < n:
            tile_b[ty * TILE + tx] = b[b_row * n + col]
        else:
            tile_b[ty * TILE + tx] = 0
        cuda.syncthreads()
        # Superstep 3: multiply
        for i in range(TILE):
            acc += tile_a[ty * TILE + i] * tile_b[i * TILE + tx]
        cuda.syncthreads()
    if row < m and col < n:
        c[row * n + col] = acc


@remembered
def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32, float64 or int32.

    int32 wraps around. Raises TypeError or ValueError as `covering_grid` and `tensor_operands` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    block = (TILE, TILE)
    flat = (tensor.view(-1) for tensor in (a, b, out))
    launch(cuda_supersteps_kernel, covering_grid(n, m, block), block, *flat, m, n, k)
    return out

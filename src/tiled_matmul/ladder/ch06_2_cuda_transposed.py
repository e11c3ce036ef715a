"""Operands that lie in memory column by column: Aᵀ·B, A·Bᵀ and Aᵀ·Bᵀ, loaded by neighbours.

A thread owns C[top + y, left + x], as in the shared tiles. What changed is which thread loads which
element: x runs along the axis that is contiguous in memory. For every layout, a tile is stored in
the same orientation, so the loop over k stays as it was; padded rows spread a store down a column
over the banks.
Source: NVIDIA, CUDA C++ Best Practices Guide, "Shared Memory in Matrix Multiplication (C=AAT)".
"""

from numba import cuda

from tiled_matmul.kit.arguments import check_pad, positive, tensor_operands
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.launch import covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

TILE = 32
PAD = 1
PITCH = TILE + PAD
A_BY_COLUMNS = True
B_BY_COLUMNS = True
DTYPES = ("float32", "float64", "int32")


@cuda.jit
@unsigned
def cuda_transposed_kernel(a, b, c):
    a_tile = cuda.shared.array((TILE, PITCH), a.dtype)
    b_tile = cuda.shared.array((TILE, PITCH), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    a_row, a_col = (x, y) if A_BY_COLUMNS else (y, x)
    b_row, b_col = (x, y) if B_BY_COLUMNS else (y, x)
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    zero = c.dtype.type(0)
    acc = zero
    for start in range(0, a.shape[1], TILE):
        a_inside = top + a_row < a.shape[0] and start + a_col < a.shape[1]
        b_inside = start + b_row < b.shape[0] and left + b_col < b.shape[1]
        a_tile[a_row, a_col] = a[top + a_row, start + a_col] if a_inside else zero
        b_tile[b_row, b_col] = b[start + b_row, left + b_col] if b_inside else zero
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if top + y < c.shape[0] and left + x < c.shape[1]:
        c[top + y, left + x] = acc


@remembered
def matmul(a, b, out=None, tile=TILE, pad=PAD):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, float32, float64 or int32.

    a and b may be row-major or the transpose of a row-major tensor, as `at.T` is; out is row-major.
    `tile` is the edge of a tile and of the block, at most 32; `pad` is how many elements are left
    unused at the end of each of its rows, at most `tile`. Raises TypeError or ValueError as
    `positive`, `check_pad`, `covering_grid` and `tensor_operands` do.
    """
    pitch = positive("tile", tile, 32) + check_pad(pad, tile)
    m, n, _, out = tensor_operands(a, b, out, DTYPES, column_major=True)
    block = (tile, tile)
    kernel = with_constants(
        cuda_transposed_kernel,
        TILE=tile,
        PITCH=pitch,
        A_BY_COLUMNS=not a.is_contiguous(),
        B_BY_COLUMNS=not b.is_contiguous(),
    )
    launch(kernel, covering_grid(n, m, block), block, a, b, out)
    return out

"""Shared tiles whose rows are padded by one element; x is the row, as in the article.

A thread owns C[top + x, left + y]. In shared memory, lanes that differ in x read down a column,
which is in a single bank unless the rows are padded. A thread does not load the elements that it
computes: a warp loads along the rows of A and B, so that neighbours load neighbours. `PAD = 0` and
`COALESCED = False` undo the two remedies, one at a time; without both the mapping is the article's.
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
COALESCED = True
DTYPES = ("float32", "float64", "int32")


@cuda.jit
@unsigned
def cuda_padded_kernel(a, b, c):
    a_tile = cuda.shared.array((TILE, PITCH), a.dtype)
    b_tile = cuda.shared.array((TILE, PITCH), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    u, v = (y, x) if COALESCED else (x, y)
    top, left = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    zero = c.dtype.type(0)
    acc = zero
    for start in range(0, a.shape[1], TILE):
        a_inside = top + u < a.shape[0] and start + v < a.shape[1]
        b_inside = start + u < b.shape[0] and left + v < b.shape[1]
        a_tile[u, v] = a[top + u, start + v] if a_inside else zero
        b_tile[u, v] = b[start + u, left + v] if b_inside else zero
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[x, k] * b_tile[k, y]
        cuda.syncthreads()
    if top + x < c.shape[0] and left + y < c.shape[1]:
        c[top + x, left + y] = acc


@remembered
def matmul(a, b, out=None, tile=TILE, pad=PAD, coalesced=True):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32, float64 or int32.

    `tile` is the edge of a tile and of the block, at most 32; `pad` is how many elements are left
    unused at the end of each of its rows, at most `tile`; without `coalesced` a thread loads the
    place that it computes, so that neighbours load from different rows. Raises TypeError or
    ValueError as `positive`, `check_pad`, `covering_grid` and `tensor_operands` do.
    """
    pitch = positive("tile", tile, 32) + check_pad(pad, tile)
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    block = (tile, tile)
    options = {"TILE": tile, "PITCH": pitch, "COALESCED": bool(coalesced)}
    kernel = with_constants(cuda_padded_kernel, **options)
    launch(kernel, covering_grid(m, n, block), block, a, b, out)
    return out

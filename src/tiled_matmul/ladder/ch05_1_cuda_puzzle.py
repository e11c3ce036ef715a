"""The Mojo puzzle's tiles: 3 × 3 in shared memory, and a last tile that is simply shorter.

A thread owns C[row, col]; x is the column. In place of zeros past the edges, no element is staged
that does not exist, and the loop over k ends where A does. The puzzle is 9 × 9 by 3 × 3, which
hides the difference; here any size will do.
Source: Modular, Mojo GPU Puzzles, "Tiled Matrix Multiplication" (manual tiling), written anew.
"""

from numba import cuda

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.launch import covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

TPB = 3  # threads per block, along each axis
DTYPES = ("float32", "float64", "int32")
MAX_TPB = 32


@cuda.jit
@unsigned
def cuda_puzzle_kernel(a, b, c):
    a_shared = cuda.shared.array((TPB, TPB), a.dtype)
    b_shared = cuda.shared.array((TPB, TPB), b.dtype)
    local_row, local_col = cuda.threadIdx.y, cuda.threadIdx.x
    row = cuda.blockIdx.y * TPB + local_row
    col = cuda.blockIdx.x * TPB + local_col
    inside = row < c.shape[0] and col < c.shape[1]
    acc = c.dtype.type(0)
    for start in range(0, a.shape[1], TPB):
        if row < a.shape[0] and start + local_col < a.shape[1]:
            a_shared[local_row, local_col] = a[row, start + local_col]
        if start + local_row < b.shape[0] and col < b.shape[1]:
            b_shared[local_row, local_col] = b[start + local_row, col]
        cuda.syncthreads()
        if inside:
            for k in range(min(TPB, a.shape[1] - start)):
                acc += a_shared[local_row, k] * b_shared[k, local_col]
        cuda.syncthreads()
    if inside:
        c[row, col] = acc


@remembered
def matmul(a, b, out=None, tpb=TPB):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32, float64 or int32.

    `tpb` is the tile's edge, 1 to 32 elements; a block has tpb² threads. int32 wraps around.
    Raises TypeError or ValueError as `positive`, `covering_grid` and `tensor_operands` do.
    """
    positive("tpb", tpb, MAX_TPB)
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    block = (tpb, tpb)
    kernel = with_constants(cuda_puzzle_kernel, TPB=tpb)
    launch(kernel, covering_grid(n, m, block), block, a, b, out)
    return out

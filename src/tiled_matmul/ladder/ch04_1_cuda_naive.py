"""One thread an element, `threadIdx.x` counting rows.

A thread owns C[row, col] and walks along a row of A and down a column of B. What changed from the
rung below: the two loops over i and j are gone, the grid is those loops. Neighbouring threads of a
warp take neighbouring rows, as in the kernel of Tiled Matmul 101 (2025); the next rung shows what
that costs.
"""

from numba import cuda

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.launch import check_block, covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

BLOCK = (16, 16)


@cuda.jit
@unsigned
def cuda_naive_kernel(a, b, c):
    row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    col = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row < c.shape[0] and col < c.shape[1]:
        acc = a[row, 0] * b[0, col]
        for k in range(1, a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc


@remembered
def matmul(a, b, out=None, block=BLOCK):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32 or float64.

    `block` is (rows, columns) of C for one block, at most 1024 together. Raises TypeError or
    ValueError as `check_block`, `covering_grid` and `tensor_operands` do.
    """
    check_block(block)
    m, n, _, out = tensor_operands(a, b, out)
    launch(cuda_naive_kernel, covering_grid(m, n, block), block, a, b, out)
    return out

"""One thread an element, `threadIdx.x` counting columns.

A thread owns C[row, col], as in the rung below; only the index map changed. Neighbouring threads
of a warp take neighbouring columns, so what they load from B and store to C lies side by side.
Source: NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
"""

from numba import cuda

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.launch import check_block, covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

BLOCK = (16, 16)


@cuda.jit
@unsigned
def cuda_coalesced_kernel(a, b, c):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if row < c.shape[0] and col < c.shape[1]:
        acc = a[row, 0] * b[0, col]
        for k in range(1, a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc


@remembered
def matmul(a, b, out=None, block=BLOCK):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32 or float64.

    `block` is (columns, rows) of C for one block, at most 1024 together. Raises TypeError or
    ValueError as `check_block`, `covering_grid` and `tensor_operands` do.
    """
    check_block(block)
    m, n, _, out = tensor_operands(a, b, out)
    launch(cuda_coalesced_kernel, covering_grid(n, m, block), block, a, b, out)
    return out

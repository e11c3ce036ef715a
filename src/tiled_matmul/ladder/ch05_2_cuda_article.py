"""A wrong turn: shared tiles with `threadIdx.x` counting rows, as in a C kernel for integers.

A thread owns C[i + i0, j + j0]; i0, which comes from x, is the row. Sizes are arguments, matrices
flat, and the names and the order of statements are the article's. What changed from the shared
tiles: neighbours in a warp take neighbouring rows, which costs twice over, in global memory and in
shared memory; the chapter on banks finds out what.
Source: Tiled Matmul 101 (2025), `matmul_smem`, rebuilt; the article multiplies int.
"""

from numba import cuda

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.launch import covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

TILE = 16
DTYPES = ("float32", "float64", "int32")


@cuda.jit
@unsigned
def cuda_article_kernel(A, B, C, M, K, N):
    tile_A = cuda.shared.array((TILE, TILE), A.dtype)
    tile_B = cuda.shared.array((TILE, TILE), B.dtype)
    i = cuda.blockIdx.x * cuda.blockDim.x
    j = cuda.blockIdx.y * cuda.blockDim.y
    i0 = cuda.threadIdx.x
    j0 = cuda.threadIdx.y
    total = C.dtype.type(0)
    for k in range(0, K, TILE):
        if i + i0 < M and k + j0 < K:
            tile_A[i0, j0] = A[(i + i0) * K + (k + j0)]
        else:
            tile_A[i0, j0] = 0
        if j + j0 < N and k + i0 < K:
            tile_B[i0, j0] = B[(k + i0) * N + (j + j0)]
        else:
            tile_B[i0, j0] = 0
        cuda.syncthreads()
        for k0 in range(TILE):
            total += tile_A[i0, k0] * tile_B[k0, j0]
        cuda.syncthreads()
    if i + i0 < M and j + j0 < N:
        C[(i + i0) * N + (j + j0)] = total


@remembered
def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, int32, float32 or float64.

    int32 wraps around. Raises TypeError or ValueError as `covering_grid` and `tensor_operands` do.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    block = (TILE, TILE)
    flat = (tensor.view(-1) for tensor in (a, b, out))
    launch(cuda_article_kernel, covering_grid(m, n, block), block, *flat, m, k, n)
    return out

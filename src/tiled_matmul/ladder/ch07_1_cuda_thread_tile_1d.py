"""A column of C for each thread: what it loads from B's tile is used ROWS times.

A thread owns ROWS elements of C, one below the other, and a warp 32 columns of them. What changed
from shared tiles: for each k a thread loads one element of B and ROWS of A and does ROWS
multiply-adds with them. So it loads (1 + ROWS)/ROWS elements from shared memory for each
multiply-add, in place of 2. A's tile is stored transposed, so that the ROWS elements lie side by
side and come in loads of 16 bytes. Its rows are padded by 4 elements, so that storing it has no
bank conflicts.
Source: Volkov & Demmel (2008); Boehm, How to Optimize a CUDA Matmul Kernel (2022), kernel 4.
"""

from numba import cuda

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.launch import covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

TILE_M, TILE_N, TILE_K = 64, 64, 8
ROWS = 8
THREADS = 512  # TILE_M·TILE_N/ROWS, and as many elements as each of the two tiles has
A_ROW = TILE_M + 4
DTYPES = ("float32", "float64", "int32")


@cuda.jit(max_registers=40)  # so that three blocks share a multiprocessor
@unsigned
def cuda_thread_tile_1d_kernel(a, b, c):
    a_tile = cuda.shared.array((TILE_K, A_ROW), a.dtype, alignment=16)
    b_tile = cuda.shared.array((TILE_K, TILE_N), b.dtype, alignment=16)
    acc = cuda.local.array(ROWS, c.dtype)
    M, N, K = c.shape[0], c.shape[1], a.shape[1]
    top, left = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    t = cuda.threadIdx.x
    row, col = t // TILE_N * ROWS, t % TILE_N  # of C, in the block's tile
    a_row, a_col = t // TILE_K, t % TILE_K  # of A's tile: what this thread loads
    b_row, b_col = t // TILE_N, t % TILE_N
    zero = c.dtype.type(0)
    for i in range(ROWS):
        acc[i] = zero
    for start in range(0, K, TILE_K):
        in_a = top + a_row < M and start + a_col < K
        in_b = start + b_row < K and left + b_col < N
        a_tile[a_col, a_row] = a[top + a_row, start + a_col] if in_a else zero
        b_tile[b_row, b_col] = b[start + b_row, left + b_col] if in_b else zero
        cuda.syncthreads()
        for k in range(TILE_K):
            b_element = b_tile[k, col]
            for i in range(ROWS):
                acc[i] += a_tile[k, row + i] * b_element
        cuda.syncthreads()
    for i in range(ROWS):
        if top + row + i < M and left + col < N:
            c[top + row + i, left + col] = acc[i]


@remembered
def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32, float64 or int32.

    int32 wraps around. Raises TypeError or ValueError as `covering_grid` and `tensor_operands` do.
    """
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    grid = covering_grid(n, m, (TILE_N, TILE_M))
    launch(cuda_thread_tile_1d_kernel, grid, (THREADS, 1), a, b, out)
    return out

"""Four elements in one instruction, on every way: to and from global memory, and from shared.

A thread owns 8×8 elements of C in four quads, as in the rung below. What changed: a thread loads
its four elements of each tile from global memory in one load of 16 bytes, in place of four loads.
The source loads shared memory by the quad, which the compiler did by itself for the rung below, and
stores C by the row of a quad. Such a load has to begin at a multiple of 16 bytes. So this kernel
runs where K and N are multiples of 4 and all three matrices begin there, as torch's own allocations
do. For anything else the launcher takes the rung below.
Source: NVIDIA, PTX ISA, "ld" and "st" with .v4; Boehm, How to Optimize a CUDA Matmul Kernel (2022),
kernel 6.
"""

from numba import cuda

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.fours import fours
from tiled_matmul.kit.intrinsics import load4, store4
from tiled_matmul.kit.launch import covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned
from tiled_matmul.ladder.cuda_thread_tile_2d import cuda_thread_tile_2d_kernel

TILE_M, TILE_N, TILE_K = 128, 128, 8
THREADS = 256  # 16 × 16 threads with 8 × 8 elements each; each loads one four of each tile
A_ROW = TILE_M + 4
DTYPES = ("float32", "float64", "int32")


@cuda.jit
@unsigned
def cuda_vectorised_kernel(a, b, c):
    a_tile = cuda.shared.array((TILE_K, A_ROW), a.dtype, alignment=16)
    b_tile = cuda.shared.array((TILE_K, TILE_N), b.dtype, alignment=16)
    acc = cuda.local.array((8, 8), c.dtype)
    a_part = cuda.local.array(8, a.dtype)
    b_part = cuda.local.array(8, b.dtype)
    M, N, K = c.shape[0], c.shape[1], a.shape[1]
    top, left = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    t = cuda.threadIdx.x
    row, col = t // 16 * 4, t % 16 * 4  # of the thread's first quad
    a_row, a_col = t // 2, t % 2 * 4  # of the four that it loads of A
    b_row, b_col = t // 32, t % 32 * 4
    zero = c.dtype.type(0)
    for i in range(8):
        for j in range(8):
            acc[i, j] = zero
    for start in range(0, K, TILE_K):
        a_four, b_four = (zero, zero, zero, zero), (zero, zero, zero, zero)
        if top + a_row < M and start + a_col < K:  # K is a multiple of 4: all or none
            a_four = load4(a, (top + a_row, start + a_col))
        if start + b_row < K and left + b_col < N:
            b_four = load4(b, (start + b_row, left + b_col))
        store4(a_part, 0, a_four)
        for n in range(4):
            a_tile[a_col + n, a_row] = a_part[n]
        store4(b_tile, (b_row, b_col), b_four)
        cuda.syncthreads()
        for k in range(TILE_K):
            for h in range(2):
                store4(a_part, h * 4, load4(a_tile, (k, row + h * 64)))
                store4(b_part, h * 4, load4(b_tile, (k, col + h * 64)))
            for i in range(8):
                for j in range(8):
                    acc[i, j] += a_part[i] * b_part[j]
        cuda.syncthreads()
    for i in range(8):
        y = top + row + i % 4 + i // 4 * 64
        for h in range(2):
            x = left + col + h * 64
            if y < M and x < N:
                store4(c, (y, x), load4(acc, (i, h * 4)))


@remembered
def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32, float64 or int32.

    int32 wraps around. Raises TypeError or ValueError as `covering_grid` and `tensor_operands` do.
    """
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    kernel = cuda_vectorised_kernel if fours(a, b, out) else cuda_thread_tile_2d_kernel
    launch(kernel, covering_grid(n, m, (TILE_N, TILE_M)), (THREADS, 1), a, b, out)
    return out

"""A tile of C for each thread, 8×8: 16 elements loaded for 64 multiplications.

A thread owns ROWS × COLUMNS elements of C, in quads of 4×4 that lie 64 apart; 16 × 16 threads are a
block. What changed from the rung below: for each k a thread loads ROWS elements of A *and* COLUMNS
of B into registers and multiplies each with each. With 8 and 8 it loads 1/4 of an element from
shared memory for each multiply-add. Four neighbours come in one load of 16 bytes, which the
compiler finds by itself in both tiles, because rows begin at multiples of 16 bytes and A is stored
transposed. The quads lie apart so that neighbouring threads read neighbouring quads, without bank
conflicts.
Source: Volkov & Demmel (2008); Boehm, How to Optimize a CUDA Matmul Kernel (2022), kernel 5; the
quads as in CUTLASS (Kerr et al., 2017).
"""

from numba import cuda

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.launch import covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unsigned import unsigned

ROWS, COLUMNS = 8, 8
TILE_M, TILE_N, TILE_K = 16 * ROWS, 16 * COLUMNS, 8
A_ROW = TILE_M + 4  # padded, so that storing A transposed meets no bank conflict
THREADS = 256
MOST = 16  # rows or columns of a thread
DTYPES = ("float32", "float64", "int32")


@cuda.jit
@unsigned
def cuda_thread_tile_2d_kernel(a, b, c):
    a_tile = cuda.shared.array((TILE_K, A_ROW), a.dtype, alignment=16)
    b_tile = cuda.shared.array((TILE_K, TILE_N), b.dtype, alignment=16)
    acc = cuda.local.array((ROWS, COLUMNS), c.dtype)
    a_part = cuda.local.array(ROWS, a.dtype)
    b_part = cuda.local.array(COLUMNS, b.dtype)
    M, N, K = c.shape[0], c.shape[1], a.shape[1]
    top, left = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    t = cuda.threadIdx.x
    row, col = t // 16 * 4, t % 16 * 4  # of the thread's first quad
    zero = c.dtype.type(0)
    for i in range(ROWS):
        for j in range(COLUMNS):
            acc[i, j] = zero
    for start in range(0, K, TILE_K):
        for n in range(TILE_M // 32):  # 256 threads load 32 rows of 8
            i, k = t // 8 + n * 32, t % 8
            in_a = top + i < M and start + k < K
            a_tile[k, i] = a[top + i, start + k] if in_a else zero
        for n in range(TILE_N // 32):
            e = t + n * THREADS
            k, j = e // TILE_N, e % TILE_N
            in_b = start + k < K and left + j < N
            b_tile[k, j] = b[start + k, left + j] if in_b else zero
        cuda.syncthreads()
        for k in range(TILE_K):
            for i in range(ROWS):
                a_part[i] = a_tile[k, row + i % 4 + i // 4 * 64]
            for j in range(COLUMNS):
                b_part[j] = b_tile[k, col + j % 4 + j // 4 * 64]
            for i in range(ROWS):
                for j in range(COLUMNS):
                    acc[i, j] += a_part[i] * b_part[j]
        cuda.syncthreads()
    for i in range(ROWS):
        y = top + row + i % 4 + i // 4 * 64
        for j in range(COLUMNS):
            x = left + col + j % 4 + j // 4 * 64
            if y < M and x < N:
                c[y, x] = acc[i, j]


def kernel(rows=ROWS, columns=COLUMNS):
    """Return the kernel for rows × columns elements a thread, each 4, 8, 12 or 16.

    Raises TypeError or ValueError for other numbers.
    """
    for name, value in (("rows", rows), ("columns", columns)):
        if positive(name, value, MOST) % 4:
            raise ValueError(f"{name} must be a multiple of 4, got {value}")
    m, n = 16 * rows, 16 * columns
    sizes = {"ROWS": rows, "COLUMNS": columns, "TILE_M": m, "TILE_N": n, "A_ROW": m + 4}
    return with_constants(cuda_thread_tile_2d_kernel, **sizes)


@remembered
def matmul(a, b, out=None, rows=ROWS, columns=COLUMNS):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32, float64 or int32.

    A thread owns rows × columns elements, each 4, 8, 12 or 16. int32 wraps around. Raises TypeError
    or ValueError as `kernel`, `covering_grid` and `tensor_operands` do.
    """
    chosen = kernel(rows, columns)
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    launch(chosen, covering_grid(n, m, (16 * columns, 16 * rows)), (THREADS, 1), a, b, out)
    return out

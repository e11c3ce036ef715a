"""A compact tile for each warp: 32×64 elements of C, so that its threads load the same elements.

A thread owns 8×8 elements of C in four quads, as in the rung below. What changed: which ones. In
the rung below, a warp is two rows of sixteen threads and loads 16 elements of A and 128 of B in
each step. Here it is four rows of eight: 32 of A and 64 of B, a third fewer elements in as many
wavefronts.
Source: NVIDIA, CUTLASS (Kerr et al., 2017), "warp tile"; Boehm (2022), kernel 10.
"""

from numba import cuda

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.fours import fours
from tiled_matmul.kit.intrinsics import load4, store4
from tiled_matmul.kit.launch import covering_grid, launch
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.kit.unsigned import unsigned
from tiled_matmul.ladder import cuda_thread_tile_2d

TILE_M, TILE_N, TILE_K = 128, 128, 8
THREADS = 256
WARP_M, WARP_N = 32, 64
A_ROW = TILE_M + 4
DTYPES = ("float32", "int32")


@cuda.jit(max_registers=128)
@unrolled
@unsigned
def cuda_warp_tiles_kernel(a, b, c):
    a_tile = cuda.shared.array((2, TILE_K, A_ROW), a.dtype, alignment=16)
    b_tile = cuda.shared.array((2, TILE_K, TILE_N), b.dtype, alignment=16)
    acc = cuda.local.array((8, 8), c.dtype)
    a_part = cuda.local.array(8, a.dtype)
    b_part = cuda.local.array(8, b.dtype)
    M, N = c.shape
    K = a.size // M
    B_ROW = b.size // K
    top, left = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    t = cuda.threadIdx.x
    warp, lane = t // 32, t % 32
    warp_row = warp // (TILE_N // WARP_N) * WARP_M
    warp_col = warp % (TILE_N // WARP_N) * WARP_N
    row = warp_row + lane // 8 * 4  # of the thread's first quad
    col = warp_col + lane % 8 * 4
    a_row, a_col = t // 2, t % 2 * 4  # of the four that it loads of A
    b_row, b_col = t // 32, t % 32 * 4
    a_from = min(top + a_row, M - 1) * K + a_col
    b_from = b_row * B_ROW + min(left + b_col, N - 4)
    zero = c.dtype.type(0)
    for i in range(8):
        for j in range(8):
            acc[i, j] = zero
    at = (K - 1) % TILE_K + 1  # where the second tile begins
    a_four, b_four = (zero, zero, zero, zero), (zero, zero, zero, zero)
    if a_col < at:
        a_four = load4(a, a_from)
    if b_row < at:
        b_four = load4(b, b_from)
    a_from += at
    b_from += at * B_ROW
    now = 0
    while True:
        store4(a_part, 0, a_four)
        for n in range(4):
            a_tile[now, a_col + n, a_row] = a_part[n]
        store4(b_tile, (now, b_row, b_col), b_four)
        cuda.syncthreads()
        if at < K:  # load the next tile
            a_four = load4(a, a_from)
            b_four = load4(b, b_from)
        for k in unroll(TILE_K):
            for h in range(2):
                a_at, b_at = row + h * (WARP_M // 2), col + h * (WARP_N // 2)
                store4(a_part, h * 4, load4(a_tile, (now, k, a_at)))
                store4(b_part, h * 4, load4(b_tile, (now, k, b_at)))
            for j in range(8):  # down one column, up the next
                for step in range(8):
                    i = 7 - step if j % 2 else step
                    acc[i, j] += a_part[i] * b_part[j]
        if at >= K:
            break
        now = 1 - now
        at += TILE_K
        a_from += TILE_K
        b_from += TILE_K * B_ROW
    for i in range(8):
        y = top + row + i % 4 + i // 4 * (WARP_M // 2)
        for j in range(8):
            x = left + col + j % 4 + j // 4 * (WARP_N // 2)
            if y < M and x < N:
                c[y, x] = acc[i, j]


@remembered
def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32 or int32.

    int32 wraps around. Where K or N is not a multiple of 4, or A or B does not begin at a
    multiple of 16 bytes, `cuda_thread_tile_2d` multiplies. Raises TypeError or ValueError as
    `covering_grid` and `tensor_operands` do.
    """
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    if not fours(a, b):
        return cuda_thread_tile_2d.matmul(a, b, out)
    grid = covering_grid(n, m, (TILE_N, TILE_M))
    launch(cuda_warp_tiles_kernel, grid, (THREADS, 1), a.view(-1), b.view(-1), out)
    return out

"""Asynchronous copies: tiles bypass the registers, and two of them are in flight.

A thread owns 8×8 elements of C in four quads, in warp tiles, as in the rung below. What changed: a
thread starts copies and does not wait for them, and the third buffer is multiplied meanwhile. A is
transposed on the way, so copied by the element. B is copied in fours; the launcher aligns its rows.
Tiles are half as high, for 128 threads with more registers each, and twice as deep.
Source: NVIDIA, PTX ISA, "cp.async"; CUTLASS, multistage mainloop (2020).
"""

from numba import cuda

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.fours import rows_of_fours
from tiled_matmul.kit.intrinsics import (
    commit_copies,
    copy_async,
    copy_async4,
    load4,
    store4,
    wait_copies,
)
from tiled_matmul.kit.launch import covering_grid, launch, need_capability
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.kit.unsigned import unsigned

TILE_M, TILE_N, TILE_K = 64, 128, 16
WARP_M, WARP_N = 32, 64
STAGES = 3
AHEAD = STAGES - 2  # groups of copies that may be under way when a tile is begun
THREADS = 128
A_STEP, B_STEP = THREADS // TILE_K, THREADS * 4 // TILE_N  # rows of a tile copied at once
A_COPIES, B_COPIES = TILE_M // A_STEP, TILE_K // B_STEP
A_ROW = TILE_M + 4
DTYPES = ("float32", "int32")


@cuda.jit(max_registers=168)
@unrolled
@unsigned
def cuda_async_kernel(a, b, c):
    a_tile = cuda.shared.array((STAGES, TILE_K, A_ROW), a.dtype, alignment=16)
    b_tile = cuda.shared.array((STAGES, TILE_K, TILE_N), b.dtype, alignment=16)
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
    # What it copies: elements of A, A_STEP rows apart, and fours of B, B_STEP rows apart.
    a_row, a_col = t // TILE_K, t % TILE_K
    b_row, b_col = t // 32, t % 32 * 4
    rows = max(M, top + a_row) - (top + a_row)  # of A from the thread's first on
    columns = max(B_ROW, left + b_col) - (left + b_col)  # of B
    a_from = (top + a_row) * K + a_col
    b_from = b_row * B_ROW + left + b_col
    zero = c.dtype.type(0)
    for i in range(8):
        for j in range(8):
            acc[i, j] = zero
    use, fill = 0, 0
    at, size = 0, (K - 1) % TILE_K + 1  # of the next tile of K
    for _ in range(STAGES - 1):  # the first tiles; the very first one may not be full
        end = min(at + size, K)
        for s in range(A_COPIES):
            target, source = a_row + A_STEP * s, a_from + A_STEP * s * K
            there = 1 if at + a_col < end and A_STEP * s < rows else 0
            copy_async(a_tile, (fill, a_col, target), a, source, there)
        for s in range(B_COPIES):
            target, source = b_row + B_STEP * s, b_from + B_STEP * s * B_ROW
            there = 4 if at + target < end and columns > 0 else 0
            copy_async4(b_tile, (fill, target, b_col), b, source, there)
        commit_copies()
        at += size
        a_from += size
        b_from += size * B_ROW
        size = TILE_K
        fill += 1
    while at < K + (STAGES - 1) * TILE_K:
        wait_copies(AHEAD)
        cuda.syncthreads()
        here = rows if at < K else 0
        for s in range(A_COPIES):
            target, source = a_row + A_STEP * s, a_from + A_STEP * s * K
            there = 1 if A_STEP * s < here else 0
            copy_async(a_tile, (fill, a_col, target), a, source, there)
        there = 4 if at < K and columns > 0 else 0
        for s in range(B_COPIES):
            target, source = b_row + B_STEP * s, b_from + B_STEP * s * B_ROW
            copy_async4(b_tile, (fill, target, b_col), b, source, there)
        commit_copies()
        at += TILE_K
        a_from += TILE_K
        b_from += TILE_K * B_ROW
        for k in unroll(TILE_K):
            for h in range(2):
                a_at, b_at = row + h * (WARP_M // 2), col + h * (WARP_N // 2)
                store4(a_part, h * 4, load4(a_tile, (use, k, a_at)))
                store4(b_part, h * 4, load4(b_tile, (use, k, b_at)))
            for j in range(8):  # down one column, up the next
                for step in range(8):
                    i = 7 - step if j % 2 else step
                    acc[i, j] += a_part[i] * b_part[j]
        use = use + 1 if use < STAGES - 1 else 0
        fill = fill + 1 if fill < STAGES - 1 else 0
    for i in range(8):
        y = top + row + i % 4 + i // 4 * (WARP_M // 2)
        for j in range(8):
            x = left + col + j % 4 + j // 4 * (WARP_N // 2)
            if y < M and x < N:
                c[y, x] = acc[i, j]


@remembered
def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32 or int32.

    int32 wraps around. Needs compute capability 8.0, and the memory of `rows_of_fours(b)`. Raises
    TypeError or ValueError as `covering_grid`, `need_capability` and `tensor_operands` do.
    """
    need_capability((8, 0), "asynchronous copies")
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    grid = covering_grid(n, m, (TILE_N, TILE_M))
    operands = a.view(-1), rows_of_fours(b).view(-1), out
    launch(cuda_async_kernel, grid, (THREADS, 1), *operands)
    return out

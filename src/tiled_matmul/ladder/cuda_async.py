"""Asynchronous copies: tiles go to shared memory past the registers, two of them ahead.

A thread owns 8×8 elements of C in four quads, in warp tiles, as in the rung below. What changed: a
thread begins copies and goes on; nothing waits in its registers. There are three buffers, so that
two tiles can be under way while a third is multiplied. A is copied by the element, because it is
transposed on the way, and B by fours where its rows begin at multiples of 16 bytes, else by the
element too; what lies beyond an edge is filled with zeros by the copy itself.
Source: NVIDIA, PTX ISA, "cp.async"; CUTLASS, multistage mainloop (2020).
"""

from numba import cuda, uint64

from tiled_matmul.ladder.arguments import tensor_operands
from tiled_matmul.ladder.constants import with_constants
from tiled_matmul.ladder.cuda_vectorised import fours
from tiled_matmul.ladder.intrinsics import (
    commit_copies,
    copy_async,
    copy_async4,
    load4,
    store4,
    wait_copies,
)
from tiled_matmul.ladder.launch import covering_grid, launch, need_capability
from tiled_matmul.ladder.unroll import unroll, unrolled

TILE_M, TILE_N, TILE_K = 128, 128, 8
WARP_M, WARP_N = 32, 64
STAGES = 3
AHEAD = STAGES - 2  # groups of copies that may be under way while a tile is multiplied
THREADS = 256
A_ROW = TILE_M + 4
B_FOURS = True  # may B be copied by fours?
DTYPES = ("float32", "int32")


@cuda.jit(max_registers=128)
@unrolled
def cuda_async_kernel(a, b, c):
    a_tile = cuda.shared.array((STAGES, TILE_K, A_ROW), a.dtype, alignment=16)
    b_tile = cuda.shared.array((STAGES, TILE_K, TILE_N), b.dtype, alignment=16)
    acc = cuda.local.array((8, 8), c.dtype)
    a_part = cuda.local.array(8, a.dtype)
    b_part = cuda.local.array(8, b.dtype)
    M, N, K = uint64(c.shape[0]), uint64(c.shape[1]), uint64(a.shape[1])
    top, left = uint64(cuda.blockIdx.y * TILE_M), uint64(cuda.blockIdx.x * TILE_N)
    t = uint64(cuda.threadIdx.x)
    warp, lane = t // uint64(32), t % uint64(32)
    warp_row = warp // uint64(TILE_N // WARP_N) * uint64(WARP_M)
    warp_col = warp % uint64(TILE_N // WARP_N) * uint64(WARP_N)
    row = warp_row + lane // uint64(8) * uint64(4)  # of the thread's first quad
    col = warp_col + lane % uint64(8) * uint64(4)
    zero = c.dtype.type(0)
    for i in range(uint64(8)):
        for j in range(uint64(8)):
            acc[i, j] = zero
    start, fill, use = uint64(0), uint64(0), uint64(0)
    while start < K + uint64((STAGES - 1) * TILE_K):
        wait_copies(AHEAD)
        cuda.syncthreads()
        for n in range(uint64(TILE_M // 32)):
            i, k = t // uint64(8) + n * uint64(32), t % uint64(8)
            there = 1 if top + i < M and start + k < K else 0
            copy_async(a_tile, (fill, k, i), a, (top + i, start + k), there)
        if B_FOURS:
            k, j = t // uint64(32), t % uint64(32) * uint64(4)
            there = 4 if start + k < K and left + j < N else 0
            copy_async4(b_tile, (fill, k, j), b, (start + k, left + j), there)
        else:
            for n in range(uint64(TILE_N // 32)):
                k, j = t // uint64(32), t % uint64(32) + n * uint64(32)
                there = 1 if start + k < K and left + j < N else 0
                copy_async(b_tile, (fill, k, j), b, (start + k, left + j), there)
        commit_copies()
        start += uint64(TILE_K)
        fill = fill + uint64(1) if fill < uint64(STAGES - 1) else uint64(0)
        if start >= uint64(STAGES * TILE_K):  # the first tile has come
            for k in unroll(uint64(TILE_K)):
                for h in range(uint64(2)):
                    a_at, b_at = row + h * uint64(WARP_M // 2), col + h * uint64(WARP_N // 2)
                    store4(a_part, h * uint64(4), load4(a_tile, (use, k, a_at)))
                    store4(b_part, h * uint64(4), load4(b_tile, (use, k, b_at)))
                for i in range(uint64(8)):
                    for j in range(uint64(8)):
                        acc[i, j] += a_part[i] * b_part[j]
            use = use + uint64(1) if use < uint64(STAGES - 1) else uint64(0)
    for i in range(uint64(8)):
        y = top + row + i % uint64(4) + i // uint64(4) * uint64(WARP_M // 2)
        for j in range(uint64(8)):
            x = left + col + j % uint64(4) + j // uint64(4) * uint64(WARP_N // 2)
            if y < M and x < N:
                c[y, x] = acc[i, j]


def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32 or int32.

    int32 wraps around. Needs compute capability 8.0. Raises TypeError or ValueError as
    `covering_grid`, `need_capability` and `tensor_operands` do.
    """
    need_capability((8, 0), "asynchronous copies")
    m, n, _, out = tensor_operands(a, b, out, DTYPES)
    kernel = cuda_async_kernel if fours(b) else with_constants(cuda_async_kernel, B_FOURS=False)
    launch(kernel, covering_grid(n, m, (TILE_N, TILE_M)), (THREADS, 1), a, b, out)
    return out

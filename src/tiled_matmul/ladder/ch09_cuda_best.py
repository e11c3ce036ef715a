"""The best found: two sets of fragments, larger tiles, and C stored in fours.

A thread owns ROWS×COLUMNS elements of C in quads, in warp tiles, and tiles are copied
asynchronously, as in the rung below; two buffers are enough. What changed:

- The fragments of A and B for the next k are loaded while this k is multiplied, also across tiles:
  `use` and `fill` swap before the last k of a tile.
- The tiles of a block, a warp and a thread come from a search: a few settings, and a rule that
  picks one by the shape. Where C has few tiles or rows without aligned fours, it hands the product
  to `cuda_split_k`.
- C is stored in fours where its rows allow it, and multiplied by `alpha` before: the products are
  new numbers, so the sums need not be kept in groups of four registers.

Sources: NVIDIA, CUTLASS (Kerr et al., 2017); Gray, maxas (2014), on operand reuse.
"""

from numba import cuda

from tiled_matmul.dispatch.splits import SETTINGS, Job, pick  # noqa: F401  chapter 9 lists them
from tiled_matmul.kit.arguments import checked, tensor_operands
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.fours import fours, rows_of_fours
from tiled_matmul.kit.intrinsics import (
    commit_copies,
    copy_async,
    copy_async4,
    load4,
    store4,
    wait_copies,
)
from tiled_matmul.kit.launch import covering_grid, launch, multiprocessors, need_capability, one
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.settings import Setting
from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.kit.unsigned import unsigned
from tiled_matmul.ladder import cuda_split_k

TILE_M, TILE_N, TILE_K = 128, 256, 8  # of C for a block, and along K
WARP_M, WARP_N = 32, 128  # of C for a warp
ROWS, COLUMNS = 8, 16  # of C for a thread, in quads LANES_M and LANES_N quads apart
LANES_M, LANES_N = WARP_M // ROWS, WARP_N // COLUMNS
WARPS_N = TILE_N // WARP_N
THREADS = 256
A_ROW = TILE_M + 4
C_FOURS = True  # is C made of aligned fours?
A_STEP, B_STEP = THREADS // TILE_K, THREADS * 4 // TILE_N  # rows of a tile copied at once
A_COPIES, B_COPIES = TILE_M // A_STEP, TILE_K // B_STEP
DTYPES = ("float32",)


@cuda.jit(max_registers=255)
@unrolled
@unsigned
def cuda_best_kernel(a, b, c, alpha):
    a_tile = cuda.shared.array((2, TILE_K, A_ROW), a.dtype, alignment=16)
    b_tile = cuda.shared.array((2, TILE_K, TILE_N), b.dtype, alignment=16)
    acc = cuda.local.array((ROWS, COLUMNS), c.dtype)
    a_part = cuda.local.array((2, ROWS), a.dtype)
    b_part = cuda.local.array((2, COLUMNS), b.dtype)
    M, N = c.shape
    K = a.size // M
    B_ROW = b.size // K
    top, left = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    t = cuda.threadIdx.x
    # What it copies: elements of A at (a_k, a_m + …), fours of B at (b_k + …, b_n).
    a_k, a_m = t % TILE_K, t // TILE_K
    b_k, b_n = t * 4 // TILE_N, t * 4 % TILE_N
    rows = max(M, top + a_m) - (top + a_m)  # of A from the thread's first on
    columns = max(B_ROW, left + b_n) - (left + b_n)  # of B
    a_from = (top + a_m) * K + a_k
    b_from = b_k * B_ROW + left + b_n
    # What it multiplies: quads of four from (m, n) on.
    warp, lane = t // 32, t % 32
    m = warp // WARPS_N * WARP_M + lane // LANES_N * 4
    n = warp % WARPS_N * WARP_N + lane % LANES_N * 4
    for i in range(ROWS):
        for j in range(COLUMNS):
            acc[i, j] = 0
    use, fill = 0, 1
    at = (K - 1) % TILE_K + 1  # where the second tile begins
    for s in range(A_COPIES):
        there = 1 if a_k < at and s * A_STEP < rows else 0
        copy_async(a_tile, (use, a_k, a_m + s * A_STEP), a, a_from + s * A_STEP * K, there)
    for s in range(B_COPIES):
        k, source = b_k + s * B_STEP, b_from + s * B_STEP * B_ROW
        there = 4 if k < at and columns > 0 else 0
        copy_async4(b_tile, (use, k, b_n), b, source, there)
    commit_copies()
    wait_copies(0)
    cuda.syncthreads()
    for q in range(ROWS // 4):
        four = load4(a_tile, (use, 0, m + q * 4 * LANES_M))
        for e in range(4):
            a_part[0, q * 4 + e] = four[e]
    for q in range(COLUMNS // 4):
        four = load4(b_tile, (use, 0, n + q * 4 * LANES_N))
        for e in range(4):
            b_part[0, q * 4 + e] = four[e]
    a_from += at
    b_from += at * B_ROW
    while at < K + TILE_K:
        for k in unroll(TILE_K):
            now, then = k % 2, (k + 1) % 2
            if k == TILE_K - 1:
                wait_copies(0)
                cuda.syncthreads()
                use, fill = fill, use
            k_then = (k + 1) % TILE_K
            for q in range(ROWS // 4):
                four = load4(a_tile, (use, k_then, m + q * 4 * LANES_M))
                for e in range(4):
                    a_part[then, q * 4 + e] = four[e]
            for q in range(COLUMNS // 4):
                four = load4(b_tile, (use, k_then, n + q * 4 * LANES_N))
                for e in range(4):
                    b_part[then, q * 4 + e] = four[e]
            if k == 0:
                for s in range(A_COPIES):
                    target = (fill, a_k, a_m + s * A_STEP)
                    there = 1 if at < K and s * A_STEP < rows else 0
                    copy_async(a_tile, target, a, a_from + s * A_STEP * K, there)
                there = 4 if at < K and columns > 0 else 0
                for s in range(B_COPIES):
                    target = (fill, b_k + s * B_STEP, b_n)
                    source = b_from + s * B_STEP * B_ROW
                    copy_async4(b_tile, target, b, source, there)
                commit_copies()
                at += TILE_K
                a_from += TILE_K
                b_from += TILE_K * B_ROW
            for j in range(COLUMNS):
                for step in range(ROWS):
                    i = ROWS - 1 - step if j % 2 else step
                    acc[i, j] += a_part[now, i] * b_part[now, j]
    for i in range(ROWS):
        y = top + m + i // 4 * 4 * LANES_M + i % 4
        for q in range(COLUMNS // 4):
            x = left + n + q * 4 * LANES_N
            for e in range(4):
                acc[i, q * 4 + e] *= alpha
            if C_FOURS:
                if y < M and x < N:
                    store4(c, (y, x), load4(acc, (i, q * 4)))
            else:
                for e in range(4):
                    if y < M and x + e < N:
                        c[y, x + e] = acc[i, q * 4 + e]


@remembered
def matmul(a, b, out=None, setting=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32.

    `setting` is a Setting, for this kernel; it then needs the memory of `rows_of_fours(b)`. None
    lets `dispatch.splits.pick` decide, also whether `cuda_split_k` takes the product and its
    memory. Needs compute capability 8.0. Raises TypeError or ValueError as `covering_grid`,
    `need_capability`, `Setting.constants` and `tensor_operands` do.
    """
    need_capability((8, 0), "asynchronous copies")
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    if setting is None:
        picked = pick(Job(m, n, k, multiprocessors(), fours(b)))
        if picked.splits > 1 or not fours(b, out):
            with checked():
                return cuda_split_k.matmul(a, b, out=out)
        setting = picked.setting
    elif not isinstance(setting, Setting):
        raise TypeError(f"setting must be a Setting or None, got {setting!r}")
    constants = setting.constants(fours(out))
    kernel = with_constants(cuda_best_kernel, max_registers=setting.max_registers, **constants)
    grid = covering_grid(n, m, (setting.tile_n, setting.tile_m))
    launch(kernel, grid, (setting.threads, 1), a.view(-1), rows_of_fours(b).view(-1), out, one(out))
    return out

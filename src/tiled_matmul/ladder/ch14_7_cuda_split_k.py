"""Split-K in Numba: float32 at any shape, with tiles and parts of K that a model picks.

A block owns a tile of C and one part of K; blockIdx.z is the part. What changed from `cuda_best`:

- A block stores its sums in a matrix of its part's own, and a second kernel adds up the parts, in
  their order: every run gives the same bits.
- Where rows of B do not consist of aligned fours, elements are copied one by one, or B is copied to
  such rows first, whichever takes less. Parts have such rows. To a C that has not, a warp stores by
  way of shared memory, so that its lanes store neighbours.

Source: NVIDIA, CUTLASS, "split-K", in parallel.
"""

from numba import cuda

from tiled_matmul.dispatch.splits import Job, Split, pick
from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.fours import fours
from tiled_matmul.kit.intrinsics import (
    commit_copies,
    copy_async,
    copy_async4,
    load4,
    store4,
    wait_copies,
)
from tiled_matmul.kit.launch import covering_grid, launch, multiprocessors, need_capability, one
from tiled_matmul.kit.plans import copied, remembered, scratch
from tiled_matmul.kit.settings import Setting, cover
from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.kit.unsigned import unsigned

TILE_M, TILE_N, TILE_K = 128, 256, 8  # of C for a block, and along K
WARP_M, WARP_N = 32, 128  # of C for a warp
ROWS, COLUMNS = 8, 16  # of C for a thread, in quads LANES_M and LANES_N quads apart
LANES_M, LANES_N = WARP_M // ROWS, WARP_N // COLUMNS
WARPS_N = TILE_N // WARP_N
THREADS = 256
A_ROW = TILE_M + 4
WIDE = 4  # elements of B that are copied at once: 4 or 1
C_FOURS = True  # is C made of aligned fours?
WARPS, C_ROW = THREADS // 32, WARP_N + 1
A_STEP, B_STEP = THREADS // TILE_K, THREADS * WIDE // TILE_N  # rows of a tile copied at once
A_COPIES, B_COPIES = TILE_M // A_STEP, TILE_K // B_STEP
SUMMED = 32, 8  # columns and rows of C that a block of the second kernel adds up
DTYPES = ("float32",)


@cuda.jit(max_registers=255)
@unrolled
@unsigned
def cuda_split_k_kernel(a, b, parts, alpha):
    a_tile = cuda.shared.array((2, TILE_K, A_ROW), a.dtype, alignment=16)
    b_tile = cuda.shared.array((2, TILE_K, TILE_N), b.dtype, alignment=16)
    acc = cuda.local.array((ROWS, COLUMNS), parts.dtype)
    a_part = cuda.local.array((2, ROWS), a.dtype)
    b_part = cuda.local.array((2, COLUMNS), b.dtype)
    SPLITS, M, N = parts.shape
    K = a.size // M
    B_ROW = b.size // K
    top, left, split = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N, cuda.blockIdx.z
    t = cuda.threadIdx.x
    # The block's part of K: whole tiles, but for the last of K.
    steps = (K + TILE_K - 1) // TILE_K
    begin = split * steps // SPLITS * TILE_K
    end = min((split + 1) * steps // SPLITS * TILE_K, K)
    # What the thread copies: elements of A at (a_k, a_m + …), WIDE of B at (b_k + …, b_n).
    a_k, a_m = t % TILE_K, t // TILE_K
    b_k, b_n = t * WIDE // TILE_N, t * WIDE % TILE_N
    rows = max(M, top + a_m) - (top + a_m)  # of A from the thread's first on
    a_from = (top + a_m) * K + begin + a_k
    columns = max(B_ROW, left + b_n) - (left + b_n)  # of B from the thread's first on
    b_from = (begin + b_k) * B_ROW + left + b_n
    # What it multiplies: quads of four from (m, n) on.
    warp, lane = t // 32, t % 32
    m = warp // WARPS_N * WARP_M + lane // LANES_N * 4
    n = warp % WARPS_N * WARP_N + lane % LANES_N * 4
    for i in range(ROWS):
        for j in range(COLUMNS):
            acc[i, j] = 0
    use, fill = 0, 1
    first = (end - begin - 1) % TILE_K + 1  # the first tile may be a short one
    for s in range(A_COPIES):
        there = 1 if a_k < first and s * A_STEP < rows else 0
        copy_async(a_tile, (use, a_k, a_m + s * A_STEP), a, a_from + s * A_STEP * K, there)
    for s in range(B_COPIES):
        k, source = b_k + s * B_STEP, b_from + s * B_STEP * B_ROW
        there = 1 if k < first and columns > 0 else 0
        if WIDE == 4:
            copy_async4(b_tile, (use, k, b_n), b, source, 4 * there)
        else:
            copy_async(b_tile, (use, k, b_n), b, source, there)
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
    at = begin + first
    a_from += first
    b_from += first * B_ROW
    while at < end + TILE_K:
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
                    there = 1 if at < end and s * A_STEP < rows else 0
                    copy_async(a_tile, target, a, a_from + s * A_STEP * K, there)
                there = 1 if at < end and columns > 0 else 0
                for s in range(B_COPIES):
                    target = (fill, b_k + s * B_STEP, b_n)
                    source = b_from + s * B_STEP * B_ROW
                    if WIDE == 4:
                        copy_async4(b_tile, target, b, source, 4 * there)
                    else:
                        copy_async(b_tile, target, b, source, there)
                commit_copies()
                at += TILE_K
                a_from += TILE_K
                b_from += TILE_K * B_ROW
            for j in range(COLUMNS):
                for step in range(ROWS):
                    i = ROWS - 1 - step if j % 2 else step
                    acc[i, j] += a_part[now, i] * b_part[now, j]
    if C_FOURS:
        for i in range(ROWS):
            y = top + m + i // 4 * 4 * LANES_M + i % 4
            for q in range(COLUMNS // 4):
                x = left + n + q * 4 * LANES_N
                for e in range(4):
                    acc[i, q * 4 + e] *= alpha
                if y < M and x < N:
                    store4(parts, (split, y, x), load4(acc, (i, q * 4)))
    else:
        # A lane has quads of a row, and stores elements 32 apart.
        c_rows = cuda.shared.array((WARPS, LANES_M, C_ROW), parts.dtype)
        top, left = top + warp // WARPS_N * WARP_M, left + warp % WARPS_N * WARP_N
        for i in unroll(ROWS):
            for j in range(COLUMNS):
                x = (j // 4 * LANES_N + lane % LANES_N) * 4 + j % 4
                c_rows[warp, lane // LANES_N, x] = acc[i, j] * alpha
            cuda.syncwarp()
            for s in range(COLUMNS):
                row, x = (s * 32 + lane) // WARP_N, (s * 32 + lane) % WARP_N
                y = top + (i // 4 * LANES_M + row) * 4 + i % 4
                if y < M and left + x < N:
                    parts[split, y, left + x] = c_rows[warp, row, x]
            cuda.syncwarp()


@cuda.jit
@unsigned
def sum_parts_kernel(parts, c):
    SPLITS = parts.shape[0]
    M, N = c.shape
    x = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    y = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if y < M and x < N:
        total = parts[0, y, x]
        for split in range(1, SPLITS):
            total += parts[split, y, x]
        c[y, x] = total


@remembered
def matmul(a, b, out=None, *, setting=None, splits=None, padded=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float32.

    `setting` is a Setting, `splits` the number of parts that K is cut into, and `padded` says
    whether rows of b that do not consist of aligned fours are first copied to ones that do; C then
    goes through a part as well. None picks them by the shape; with a setting of your own, one part,
    and no copy. Takes 4 bytes for each element of C and each part. Needs compute capability 8.0.
    Raises TypeError or ValueError as `covering_grid`, `need_capability`,
    `Setting.split_constants` and `tensor_operands` do, and for more parts than tiles along K.
    """
    need_capability((8, 0), "asynchronous copies")
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    split = Split(setting)
    if setting is None:
        split = pick(Job(m, n, k, multiprocessors(), fours(b)))
    elif not isinstance(setting, Setting):
        raise TypeError(f"setting must be a Setting or None, got {setting!r}")
    setting = split.setting
    splits = split.splits if splits is None else splits
    positive("splits", splits, cover(k, setting.tile_k))
    row = cover(n, 4) * 4
    if not fours(b) and (split.padded if padded is None else padded):
        wider = scratch(k, row, dtype=b.dtype, device=b.device)
        copied(wider[:, :n], b)
        b = wider
    apart = splits > 1 or (fours(b) and not fours(out))
    parts = scratch(splits, m, row, dtype=out.dtype, device=out.device) if apart else out[None]
    made = setting.split_constants(4 if fours(b) else 1, fours(b, parts[0]))
    kernel = with_constants(cuda_split_k_kernel, max_registers=setting.max_registers, **made)
    grid = (*covering_grid(n, m, (setting.tile_n, setting.tile_m)), splits)
    launch(kernel, grid, (setting.threads, 1), a.view(-1), b.view(-1), parts, one(out))
    if apart:
        launch(sum_parts_kernel, covering_grid(n, m, SUMMED), SUMMED, parts, out)
    return out

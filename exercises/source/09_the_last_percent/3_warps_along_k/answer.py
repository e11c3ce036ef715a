@cuda.jit
def warps_along_k(a, b, c):
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    y, x = lane // COLUMNS, lane % COLUMNS
    row, col = cuda.blockIdx.y * ROWS + y, cuda.blockIdx.x * COLUMNS + x
    a_tile = cuda.shared.array((WARPS, ROWS, DEPTH), a.dtype)
    b_tile = cuda.shared.array((WARPS, DEPTH, COLUMNS), b.dtype)
    sums = cuda.shared.array((WARPS, 32), c.dtype)
    top, left = cuda.blockIdx.y * ROWS, cuda.blockIdx.x * COLUMNS
    K = a.shape[1]
    zero = c.dtype.type(0)
    acc = zero
    for start in range(warp * DEPTH, K, WARPS * DEPTH):
        for s in range(lane, ROWS * DEPTH, 32):
            i, k = s // DEPTH, s % DEPTH
            there = top + i < a.shape[0] and start + k < K
            a_tile[warp, i, k] = a[top + i, start + k] if there else zero
        for s in range(lane, DEPTH * COLUMNS, 32):
            k, j = s // COLUMNS, s % COLUMNS
            there = start + k < K and left + j < b.shape[1]
            b_tile[warp, k, j] = b[start + k, left + j] if there else zero
        cuda.syncwarp()
        for k in range(DEPTH):
            acc += a_tile[warp, y, k] * b_tile[warp, k, x]
        cuda.syncwarp()
    sums[warp, lane] = acc
    cuda.syncthreads()
    if warp == 0 and row < c.shape[0] and col < c.shape[1]:
        for other in range(1, WARPS):
            acc += sums[other, lane]
        c[row, col] = acc

@cuda.jit
def ring(a, b, c):
    a_tile = cuda.shared.array((STAGES, TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((STAGES, TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    a_col = cuda.blockIdx.y * TILE + x  # of the element of A that the thread copies
    K = a.shape[0]
    acc = c.dtype.type(0)
    for stage in range(STAGES - 1):
        k = stage * TILE + y
        copy_async(a_tile, (stage, y, x), a, (k, a_col), k < K and a_col < a.shape[1])
        copy_async(b_tile, (stage, y, x), b, (k, col), k < K and col < b.shape[1])
        commit_copies()
    use, fill = 0, STAGES - 1
    for start in range(0, K, TILE):
        wait_copies(AHEAD)
        cuda.syncthreads()
        k = start + (STAGES - 1) * TILE + y
        copy_async(a_tile, (fill, y, x), a, (k, a_col), k < K and a_col < a.shape[1])
        copy_async(b_tile, (fill, y, x), b, (k, col), k < K and col < b.shape[1])
        commit_copies()
        for step in range(TILE):
            acc += a_tile[use, step, y] * b_tile[use, step, x]
        fill = use
        use = (use + 1) % STAGES
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

@cuda.jit
def by_views(a, b, c):
    a_tile = cuda.shared.array((TILE, DEPTH), a.dtype)
    b_tile = cuda.shared.array((DEPTH, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    acc = c.dtype.type(0)
    for step in range((a.shape[1] + DEPTH - 1) // DEPTH):
        copy_tile_async(a_tile, tile(a, TILE, DEPTH)[cuda.blockIdx.y, step], (TILE, TILE))
        copy_tile_async(b_tile, tile(b, DEPTH, TILE)[step, cuda.blockIdx.x], (TILE, TILE))
        commit_copies()
        wait_copies(0)
        cuda.syncthreads()
        for k in range(DEPTH):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

@cuda.jit
def in_flight(a, b, c):
    a_tile = cuda.shared.array((2, TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((2, TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    acc = c.dtype.type(0)
    in_a = row < a.shape[0] and x < a.shape[1]
    in_b = y < b.shape[0] and col < b.shape[1]
    copy_async(a_tile, (0, y, x), a, (row, x), in_a)
    copy_async(b_tile, (0, y, x), b, (y, col), in_b)
    commit_copies()
    now = 0
    for start in range(TILE, a.shape[1] + TILE, TILE):  # of the next tile
        wait_copies(0)
        cuda.syncthreads()
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        copy_async(a_tile, (1 - now, y, x), a, (row, start + x), in_a)
        copy_async(b_tile, (1 - now, y, x), b, (start + y, col), in_b)
        commit_copies()
        for k in range(TILE):
            acc += a_tile[now, y, k] * b_tile[now, k, x]
        now = 1 - now
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

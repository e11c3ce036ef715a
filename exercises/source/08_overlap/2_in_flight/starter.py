@cuda.jit
def in_flight(a, b, c):
    # your code: roughly 2 lines
    a_tile = cuda.shared.array((TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    acc = c.dtype.type(0)
    # your code: roughly 17 lines
    for start in range(0, a.shape[1], TILE):
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        copy_async(a_tile, (y, x), a, (row, start + x), in_a)
        copy_async(b_tile, (y, x), b, (start + y, col), in_b)
        commit_copies()
        wait_copies(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

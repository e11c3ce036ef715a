# status: WRONG
# words: they are waited for at once; hint 1
# exercise 08.2: copies in flight
@cuda.jit
def in_flight(a, b, c):
    a_tile = cuda.shared.array((2, TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((2, TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    acc = c.dtype.type(0)
    now = 0
    copy_async(a_tile, (0, y, x), a, (row, x), row < a.shape[0] and x < a.shape[1])
    copy_async(b_tile, (0, y, x), b, (y, col), y < b.shape[0] and col < b.shape[1])
    commit_copies()
    for start in range(0, a.shape[1], TILE):
        wait_copies(0)
        cuda.syncthreads()
        nxt = start + TILE
        in_a = row < a.shape[0] and nxt + x < a.shape[1]
        in_b = nxt + y < b.shape[0] and col < b.shape[1]
        copy_async(a_tile, (1 - now, y, x), a, (row, nxt + x), in_a)
        copy_async(b_tile, (1 - now, y, x), b, (nxt + y, col), in_b)
        commit_copies()
        wait_copies(0)
        for k in range(TILE):
            acc += a_tile[now, y, k] * b_tile[now, k, x]
        now = 1 - now
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

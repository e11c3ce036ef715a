# status: RACE
# words: TILE = 8, DEPTH = 16
# exercise 08.3: take this tile
@cuda.jit
def by_views(a, b, c):
    a_tile = cuda.shared.array((4, 8), a.dtype)
    b_tile = cuda.shared.array((8, 4), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * 4 + y
    col = cuda.blockIdx.x * 4 + x
    acc = c.dtype.type(0)
    for step in range((a.shape[1] + 8 - 1) // 8):
        copy_tile_async(a_tile, tile(a, 4, 8)[cuda.blockIdx.y, step], (4, 4))
        copy_tile_async(b_tile, tile(b, 8, 4)[step, cuda.blockIdx.x], (4, 4))
        commit_copies()
        wait_copies(0)
        cuda.syncthreads()
        for k in range(8):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

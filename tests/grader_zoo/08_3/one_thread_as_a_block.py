# status: RACE
# words: Two threads copy to one element; hint 1
# exercise 08.3: take this tile
@cuda.jit
def by_views(a, b, c):
    a_tile = cuda.shared.array((TILE, DEPTH), a.dtype)
    b_tile = cuda.shared.array((DEPTH, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    c_tile = tile(c, TILE, TILE)[cuda.blockIdx.y, cuda.blockIdx.x]
    acc = c.dtype.type(0)
    for step in range((a.shape[1] + DEPTH - 1) // DEPTH):
        copy_tile_async(a_tile, tile(a, TILE, DEPTH)[cuda.blockIdx.y, step], (1, 1))
        copy_tile_async(b_tile, tile(b, DEPTH, TILE)[step, cuda.blockIdx.x], (TILE, TILE))
        commit_copies()
        wait_copies(0)
        cuda.syncthreads()
        for k in range(DEPTH):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if y < c_tile.shape[0] and x < c_tile.shape[1]:
        c_tile[y, x] = acc

# status: WRONG
# words: a_tile is 4×4, and each block has its own; make it as large as what you keep in it; hint 2
# exercise 08.3: take this tile
@cuda.jit
def by_views(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    c_tile = tile(c, TILE, TILE)[cuda.blockIdx.y, cuda.blockIdx.x]
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
    if y < c_tile.shape[0] and x < c_tile.shape[1]:
        c_tile[y, x] = acc

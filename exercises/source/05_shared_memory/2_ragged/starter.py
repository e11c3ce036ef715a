@cuda.jit
def ragged(a, b, c):
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * cuda.blockDim.y + y
    col = cuda.blockIdx.x * cuda.blockDim.x + x
    zero = np.float32(0)
    acc = zero
    for step in range((a.shape[1] + TILE - 1) // TILE):
        start = step * TILE
        cuda.syncthreads()
        # your code: roughly 4 lines
        tile_a[y, x] = a[row, start + x]
        tile_b[y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(TILE):
            acc += tile_a[y, k] * tile_b[k, x]
    # your code: roughly 2 lines
    c[row, col] = acc

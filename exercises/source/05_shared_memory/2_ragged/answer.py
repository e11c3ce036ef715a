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
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        tile_a[y, x] = a[row, start + x] if in_a else zero
        tile_b[y, x] = b[start + y, col] if in_b else zero
        cuda.syncthreads()
        for k in range(TILE):
            acc += tile_a[y, k] * tile_b[k, x]
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

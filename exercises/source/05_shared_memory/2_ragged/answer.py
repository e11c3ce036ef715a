@cuda.jit
def ragged(a, b, c):
    tiles = cuda.shared.array((2, TILE, TILE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * cuda.blockDim.y + y
    col = cuda.blockIdx.x * cuda.blockDim.x + x
    zero = np.float32(0)
    acc = zero
    start = 0
    while start < a.shape[1]:
        cuda.syncthreads()
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        tiles[0, y, x] = a[row, start + x] if in_a else zero
        tiles[1, y, x] = b[start + y, col] if in_b else zero
        cuda.syncthreads()
        for k in range(TILE):
            acc += tiles[0, y, k] * tiles[1, k, x]
        start += TILE
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

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
        # your code: roughly 4 lines
        tiles[0, y, x] = a[row, start + x]
        tiles[1, y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(TILE):
            acc += tiles[0, y, k] * tiles[1, k, x]
        start += TILE
    # your code: roughly 2 lines
    c[row, col] = acc

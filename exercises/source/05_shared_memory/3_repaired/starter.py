@cuda.jit
def repaired(a, b, c):
    # roughly 1 line is missing
    left = cuda.shared.array((TILE, TILE), np.float32)
    right = cuda.shared.array((TILE, TILE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    i, j = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    row, col = min(i, c.shape[0] - 1), min(j, c.shape[1] - 1)
    total = np.float32(0)
    for start in range(0, a.shape[1], TILE):
        depth = min(TILE, a.shape[1] - start)
        left[y, x] = a[row, start + min(x, depth - 1)]
        right[y, x] = b[start + min(y, depth - 1), col]
        cuda.syncthreads()
        for k in range(depth):
            total += left[y, k] * right[k, x]
    if i == row and j == col:
        c[row, col] = total

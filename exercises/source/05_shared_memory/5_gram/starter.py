@cuda.jit
def gram(a, c):
    # roughly 3 lines are superfluous
    upper = cuda.shared.array((TILE, TILE), np.float32)
    lower = cuda.shared.array((TILE, TILE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    if left < top:
        return  # all threads of the block: another block stores this tile
    dot = np.float32(0)
    for begin in range(0, a.shape[1], TILE):
        upper[y, x] = a[top + y, begin + x]
        cuda.syncthreads()
        lower[y, x] = a[left + y, begin + x]
        cuda.syncthreads()
        for k in range(TILE):
            dot += upper[y, k] * lower[x, k]
        cuda.syncthreads()
    c[top + y, left + x] = dot
    cuda.syncthreads()
    lower[y, x] = dot
    cuda.syncthreads()
    c[left + y, top + x] = lower[x, y]
    cuda.syncthreads()

PITCH = EDGE + 1  # elements from one row of the tile to the next


@cuda.jit
def transpose(a, c):
    tile = cuda.shared.array((EDGE, PITCH), a.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * EDGE, cuda.blockIdx.x * EDGE
    for i in range(y, EDGE, ROWS):
        if top + i < a.shape[0] and left + x < a.shape[1]:
            tile[i, x] = a[top + i, left + x]
    cuda.syncthreads()
    for i in range(y, EDGE, ROWS):
        if left + i < c.shape[0] and top + x < c.shape[1]:
            c[left + i, top + x] = tile[x, i]

@cuda.jit
def by_views(a, b, c):
    # your code: roughly 2 lines
    a_tile = cuda.shared.array((TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    acc = c.dtype.type(0)
    # your code: roughly 9 lines
    for start in range(0, a.shape[1], TILE):
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        a_tile[y, x] = a[row, start + x] if in_a else c.dtype.type(0)
        b_tile[y, x] = b[start + y, col] if in_b else c.dtype.type(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

@cuda.jit
def two_buffers(a, b, c):
    a_tile = cuda.shared.array((2, TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((2, TILE, TILE), b.dtype)
    now = 0
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    zero = c.dtype.type(0)
    acc = zero
    for start in range(0, a.shape[1], TILE):
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        a_tile[now, y, x] = a[row, start + x] if in_a else zero
        b_tile[now, y, x] = b[start + y, col] if in_b else zero
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[now, y, k] * b_tile[now, k, x]
        now = 1 - now
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

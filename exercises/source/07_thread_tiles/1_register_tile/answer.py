@cuda.jit
def register_tile(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y  # 0 to TILE/2 - 1
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    zero = c.dtype.type(0)
    acc00 = acc01 = acc10 = acc11 = zero
    for start in range(0, a.shape[1], TILE):
        for i in range(y, TILE, TILE // 2):
            for j in range(x, TILE, TILE // 2):
                in_a = top + i < a.shape[0] and start + j < a.shape[1]
                in_b = start + i < b.shape[0] and left + j < b.shape[1]
                a_tile[i, j] = a[top + i, start + j] if in_a else zero
                b_tile[i, j] = b[start + i, left + j] if in_b else zero
        cuda.syncthreads()
        for k in range(TILE):
            a0, a1 = a_tile[2 * y, k], a_tile[2 * y + 1, k]
            b0, b1 = b_tile[k, 2 * x], b_tile[k, 2 * x + 1]
            acc00 += a0 * b0
            acc01 += a0 * b1
            acc10 += a1 * b0
            acc11 += a1 * b1
        cuda.syncthreads()
    row, col = top + 2 * y, left + 2 * x
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc00
    if row < c.shape[0] and col + 1 < c.shape[1]:
        c[row, col + 1] = acc01
    if row + 1 < c.shape[0] and col < c.shape[1]:
        c[row + 1, col] = acc10
    if row + 1 < c.shape[0] and col + 1 < c.shape[1]:
        c[row + 1, col + 1] = acc11

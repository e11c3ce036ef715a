# status: PASS
# words:
# exercise 05.4: the integer kernel
@cuda.jit
def integer_tiles(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    inside = row < c.shape[0] and col < c.shape[1]
    acc = c.dtype.type(0)
    for start in range(0, a.shape[1], TILE):
        if row < a.shape[0] and start + x < a.shape[1]:
            a_tile[y, x] = a[row, start + x]
        if start + y < b.shape[0] and col < b.shape[1]:
            b_tile[y, x] = b[start + y, col]
        cuda.syncthreads()
        if inside:
            for k in range(min(TILE, a.shape[1] - start)):
                acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if inside:
        c[row, col] = acc

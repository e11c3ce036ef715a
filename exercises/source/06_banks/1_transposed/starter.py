# your code: roughly 1 line
A_PITCH = 16  # elements from one row of A's tile to the next


@cuda.jit
def transposed(a, b, c):
    a_tile = cuda.shared.array((TILE, A_PITCH), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    zero = c.dtype.type(0)
    acc = zero
    for start in range(0, a.shape[1], TILE):
        in_a = top + x < a.shape[0] and start + y < a.shape[1]
        in_b = start + y < b.shape[0] and left + x < b.shape[1]
        a_tile[x, y] = a[top + x, start + y] if in_a else zero
        b_tile[y, x] = b[start + y, left + x] if in_b else zero
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if top + y < c.shape[0] and left + x < c.shape[1]:
        c[top + y, left + x] = acc

# status: PASS
# words:
# exercise 07.1: a tile of 2×2 for each thread
@cuda.jit
def register_tile(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((TILE, TILE), b.dtype)
    acc = cuda.local.array((2, 2), c.dtype)
    a_part = cuda.local.array(2, a.dtype)
    b_part = cuda.local.array(2, b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    zero = c.dtype.type(0)
    for i in range(2):
        for j in range(2):
            acc[i, j] = zero
    for start in range(0, a.shape[1], TILE):
        for i in range(y, TILE, TILE // 2):
            for j in range(x, TILE, TILE // 2):
                in_a = top + i < a.shape[0] and start + j < a.shape[1]
                in_b = start + i < b.shape[0] and left + j < b.shape[1]
                a_tile[i, j] = a[top + i, start + j] if in_a else zero
                b_tile[i, j] = b[start + i, left + j] if in_b else zero
        cuda.syncthreads()
        for k in range(min(TILE, a.shape[1] - start)):
            for i in range(2):
                a_part[i] = a_tile[2 * y + i, k]
                b_part[i] = b_tile[k, 2 * x + i]
            for i in range(2):
                for j in range(2):
                    acc[i, j] += a_part[i] * b_part[j]
        cuda.syncthreads()
    for i in range(2):
        for j in range(2):
            if top + 2 * y + i < c.shape[0] and left + 2 * x + j < c.shape[1]:
                c[top + 2 * y + i, left + 2 * x + j] = acc[i, j]

@cuda.jit
def transposed_product(a, b, c):
    a_tile = cuda.shared.array((TILE_K, TILE_M), a.dtype)
    b_tile = cuda.shared.array((TILE_K, TILE_N), b.dtype)
    acc = cuda.local.array((OWN_M, OWN_N), c.dtype)
    a_own = cuda.local.array(OWN_M, a.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    zero = c.dtype.type(0)
    for i in range(OWN_M):
        for j in range(OWN_N):
            acc[i, j] = zero
    for start in range(0, a.shape[0], TILE_K):
        for k in range(y, TILE_K, TY):
            for i in range(x, TILE_M, TX):
                in_a = start + k < a.shape[0] and top + i < a.shape[1]
                a_tile[k, i] = a[start + k, top + i] if in_a else zero
            for j in range(x, TILE_N, TX):
                in_b = start + k < b.shape[0] and left + j < b.shape[1]
                b_tile[k, j] = b[start + k, left + j] if in_b else zero
        cuda.syncthreads()
        for k in range(TILE_K):
            for i in range(OWN_M):
                a_own[i] = a_tile[k, y + i * TY]
            for j in range(OWN_N):
                b_element = b_tile[k, x + j * TX]
                for i in range(OWN_M):
                    acc[i, j] += a_own[i] * b_element
        cuda.syncthreads()
    for i in range(OWN_M):
        row = top + y + i * TY
        for j in range(OWN_N):
            col = left + x + j * TX
            if row < c.shape[0] and col < c.shape[1]:
                c[row, col] = acc[i, j]

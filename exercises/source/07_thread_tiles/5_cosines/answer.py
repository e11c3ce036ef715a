# A warp stores 4 rows of 8: without conflicts if rows begin 8 or 24 banks apart.
A_PITCH, B_PITCH = TILE_M + (8 - TILE_M) % 16, TILE_N + (8 - TILE_N) % 16


@cuda.jit
def cosines(a, b, c):
    a_tile = cuda.shared.array((TILE_K, A_PITCH), a.dtype)
    b_tile = cuda.shared.array((TILE_K, B_PITCH), b.dtype)
    acc = cuda.local.array((OWN_M, OWN_N), c.dtype)
    a_own = cuda.local.array(OWN_M, a.dtype)
    a_squares = cuda.local.array(OWN_M, c.dtype)
    b_squares = cuda.local.array(OWN_N, c.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    t = y * TX + x
    top, left = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    zero = c.dtype.type(0)
    for i in range(OWN_M):
        a_squares[i] = zero
        for j in range(OWN_N):
            b_squares[j] = zero
            acc[i, j] = zero
    for start in range(0, a.shape[1], TILE_K):
        k = t % TILE_K
        for i in range(t // TILE_K, TILE_M, TX * TY // TILE_K):
            in_a = top + i < a.shape[0] and start + k < a.shape[1]
            a_tile[k, i] = a[top + i, start + k] if in_a else zero
        for j in range(t // TILE_K, TILE_N, TX * TY // TILE_K):
            in_b = left + j < b.shape[0] and start + k < b.shape[1]
            b_tile[k, j] = b[left + j, start + k] if in_b else zero
        cuda.syncthreads()
        for k in range(TILE_K):
            for i in range(OWN_M):
                a_own[i] = a_tile[k, y + i * TY]
                a_squares[i] += a_own[i] * a_own[i]
            for j in range(OWN_N):
                b_element = b_tile[k, x + j * TX]
                b_squares[j] += b_element * b_element
                for i in range(OWN_M):
                    acc[i, j] += a_own[i] * b_element
        cuda.syncthreads()
    for i in range(OWN_M):
        row = top + y + i * TY
        for j in range(OWN_N):
            col = left + x + j * TX
            if row < c.shape[0] and col < c.shape[1]:
                c[row, col] = acc[i, j] / math.sqrt(a_squares[i] * b_squares[j])

@cuda.jit
def distances(a, b, c):
    a_tile = cuda.shared.array((DEPTH, A_ROW), a.dtype)
    b_tile = cuda.shared.array((DEPTH, B_ROW), b.dtype)
    t = cuda.threadIdx.x
    top, left = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    zero = c.dtype.type(0)
    acc = cuda.local.array((OWN_M, OWN_N), c.dtype)
    b_part = cuda.local.array(OWN_N, b.dtype)
    warp, lane = t // 32, t % 32
    row = warp // WARPS_N * LANES_M * OWN_M + lane // LANES_N  # the others LANES_M rows apart
    col = warp % WARPS_N * LANES_N * OWN_N + lane % LANES_N
    for i in range(OWN_M):
        for j in range(OWN_N):
            acc[i, j] = zero
    for start in range(0, a.shape[1], DEPTH):
        for s in range(t, TILE_M * DEPTH, THREADS):
            i, k = s // DEPTH, s % DEPTH
            there = top + i < a.shape[0] and start + k < a.shape[1]
            a_tile[k, i] = a[top + i, start + k] if there else zero
        for s in range(t, TILE_N * DEPTH, THREADS):
            j, k = s // DEPTH, s % DEPTH
            there = left + j < b.shape[0] and start + k < b.shape[1]
            b_tile[k, j] = b[left + j, start + k] if there else zero
        cuda.syncthreads()
        for k in range(DEPTH):
            for j in range(OWN_N):
                b_part[j] = b_tile[k, col + j * LANES_N]
            for i in range(OWN_M):
                of_a = a_tile[k, row + i * LANES_M]
                for j in range(OWN_N):
                    acc[i, j] += abs(of_a - b_part[j])
        cuda.syncthreads()
    for i in range(OWN_M):
        y = top + row + i * LANES_M
        for j in range(OWN_N):
            x = left + col + j * LANES_N
            if y < c.shape[0] and x < c.shape[1]:
                c[y, x] = acc[i, j]

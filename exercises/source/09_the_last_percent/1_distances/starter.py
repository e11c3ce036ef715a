@cuda.jit
def distances(a, b, c):
    a_tile = cuda.shared.array((DEPTH, A_ROW), a.dtype)
    b_tile = cuda.shared.array((DEPTH, B_ROW), b.dtype)
    t = cuda.threadIdx.x
    top, left = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    zero = c.dtype.type(0)
    # your code: roughly 9 lines
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
        # your code: roughly 7 lines
        cuda.syncthreads()
    # your code: roughly 5 lines

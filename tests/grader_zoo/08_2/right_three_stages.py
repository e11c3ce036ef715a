# status: PASS
# words:
# exercise 08.2: copies in flight
@cuda.jit
def in_flight(a, b, c):
    a_tile = cuda.shared.array((3, TILE, TILE), a.dtype)
    b_tile = cuda.shared.array((3, TILE, TILE), b.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    acc = c.dtype.type(0)
    for stage in range(2):
        start = stage * TILE
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        copy_async(a_tile, (stage, y, x), a, (row, start + x), in_a)
        copy_async(b_tile, (stage, y, x), b, (start + y, col), in_b)
        commit_copies()
    use, fill = 0, 2
    for start in range(2 * TILE, a.shape[1] + 2 * TILE, TILE):
        wait_copies(1)
        cuda.syncthreads()
        in_a = row < a.shape[0] and start + x < a.shape[1]
        in_b = start + y < b.shape[0] and col < b.shape[1]
        copy_async(a_tile, (fill, y, x), a, (row, start + x), in_a)
        copy_async(b_tile, (fill, y, x), b, (start + y, col), in_b)
        commit_copies()
        for k in range(TILE):
            acc += a_tile[use, y, k] * b_tile[use, k, x]
        use = (use + 1) % 3
        fill = (fill + 1) % 3
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc

@cuda.jit
def integer_tiles(a, b, c):
    of_a = cuda.shared.array((TILE, TILE), a.dtype)
    of_b = cuda.shared.array((TILE, TILE), b.dtype)
    zero = c.dtype.type(0)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    i, j = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    (rows, columns), last = c.shape, a.shape[1]
    acc = zero
    for start in range(0, last, TILE):
        depth = min(TILE, last - start)
        cuda.syncthreads()
        of_a[y, x] = a[i, start + x] if i < rows and x < depth else zero
        of_b[y, x] = b[start + y, j] if y < depth and j < columns else zero
        cuda.syncthreads()
        for k in range(depth):
            acc += of_a[y, k] * of_b[k, x]
    if i < rows and j < columns:
        c[i, j] = acc

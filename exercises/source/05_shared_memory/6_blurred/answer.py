@cuda.jit
def blurred(a, c):
    part = cuda.shared.array((SIDE, SIDE), a.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    zero = c.dtype.type(0)
    for i in range(y, SIDE, TILE):
        for j in range(x, SIDE, TILE):
            row, col = top + i - 1, left + j - 1
            inside = 0 <= row < a.shape[0] and 0 <= col < a.shape[1]
            part[i, j] = a[row, col] if inside else zero
    cuda.syncthreads()
    acc = zero
    for i in range(3):
        for j in range(3):
            acc += part[y + i, x + j]
    if top + y < c.shape[0] and left + x < c.shape[1]:
        c[top + y, left + x] = acc

@cuda.jit
def warps_along_k(a, b, c):
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    y, x = lane // COLUMNS, lane % COLUMNS
    row, col = cuda.blockIdx.y * ROWS + y, cuda.blockIdx.x * COLUMNS + x
    acc = c.dtype.type(0)
    # your code: roughly 29 lines

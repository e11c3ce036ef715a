@cuda.jit
def plus_transpose(a, c):
    tile = cuda.shared.array((EDGE, EDGE), a.dtype)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * EDGE, cuda.blockIdx.x * EDGE
    n = a.shape[0]
    if left < top:
        return  # the whole block: the one on the other side of the diagonal makes both tiles
    for i in range(y, EDGE, ROWS):
        if left + i < n and top + x < n:
            tile[i, x ^ i] = a[left + i, top + x]
    cuda.syncthreads()
    for i in range(y, EDGE, ROWS):
        if top + i < n and left + x < n:
            both = a[top + i, left + x] + tile[x, i ^ x]
            c[top + i, left + x] = both
            tile[x, i ^ x] = both  # no other thread reads this place before the next barrier
    cuda.syncthreads()
    for i in range(y, EDGE, ROWS):
        if left + i < n and top + x < n:
            c[left + i, top + x] = tile[i, x ^ i]

@cuda.jit
def transposed_product(a, b, c):
    a_tile = cuda.shared.array((TILE_K, TILE_M), a.dtype)
    b_tile = cuda.shared.array((TILE_K, TILE_N), b.dtype)
    acc = cuda.local.array((OWN_M, OWN_N), c.dtype)
    # your code: roughly 30 lines

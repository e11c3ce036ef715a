@triton.jit
def lower(
    a,
    c,
    M,
    K,
    a_row,
    a_col,
    c_tile,
    c_row,
    c_col,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FIRST: tl.constexpr,
):
    number = tl.program_id(0).to(tl.int64) + FIRST
    tile_m = ((tl.sqrt((8 * number + 1).to(tl.float64)) - 1) / 2).to(tl.int64)
    if tile_m * (tile_m + 1) // 2 > number:  # in case that the root was rounded up
        tile_m -= 1
    tile_n = number - tile_m * (tile_m + 1) // 2
    side = tl.arange(0, BLOCK)
    upper = tile_m * BLOCK + side[:, None]
    across = tile_n * BLOCK + side[None, :]
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        at_left = a + upper * a_row + k[None, :] * a_col
        at_right = a + across * a_row + k[:, None] * a_col
        left = tl.load(at_left, mask=(upper < M) & (k[None, :] < K), other=0.0)
        right = tl.load(at_right, mask=(across < M) & (k[:, None] < K), other=0.0)
        sums = tl.dot(left, right, sums)
    at = c + tl.program_id(0) * c_tile + side[:, None] * c_row + side[None, :] * c_col
    tl.store(at, sums.to(c.dtype.element_ty))

@triton.jit
def product(
    a,
    b,
    c,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    top, left = tl.program_id(1) * BLOCK_M, tl.program_id(0) * BLOCK_N
    a_tile = tl.make_block_ptr(a, (M, K), (a_row, a_col), (top, 0), (BLOCK_M, BLOCK_K), (1, 0))
    b_tile = tl.make_block_ptr(b, (K, N), (b_row, b_col), (0, left), (BLOCK_K, BLOCK_N), (1, 0))
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a_values = tl.load(a_tile, boundary_check=(0, 1), padding_option="zero")
        b_values = tl.load(b_tile, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a_values, b_values, acc)
        a_tile = tl.advance(a_tile, (0, BLOCK_K))
        b_tile = tl.advance(b_tile, (BLOCK_K, 0))
    c_tile = tl.make_block_ptr(c, (M, N), (c_row, c_col), (top, left), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(c_tile, acc.to(c.dtype.element_ty), boundary_check=(0, 1))

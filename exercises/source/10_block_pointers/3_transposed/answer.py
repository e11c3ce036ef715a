@triton.jit
def transposed(
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
    a_block = tl.make_block_ptr(a, (K, M), (a_row, a_col), (0, top), (BLOCK_K, BLOCK_M), (1, 0))
    b_block = tl.make_block_ptr(b, (K, N), (b_row, b_col), (0, left), (BLOCK_K, BLOCK_N), (1, 0))
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a_part = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b_part = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        sums = tl.dot(tl.trans(a_part), b_part, sums)
        a_block = tl.advance(a_block, (BLOCK_K, 0))
        b_block = tl.advance(b_block, (BLOCK_K, 0))
    c_block = tl.make_block_ptr(c, (M, N), (c_row, c_col), (top, left), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(c_block, sums.to(c.dtype.element_ty), boundary_check=(0, 1))

@triton.jit
def layer(
    a,
    b,
    bias,
    c,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    bias_step,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    top, left = tl.program_id(1) * BLOCK_M, tl.program_id(0) * BLOCK_N
    at_a = tl.make_block_ptr(a, (M, K), (a_row, a_col), (top, 0), (BLOCK_M, BLOCK_K), (1, 0))
    at_b = tl.make_block_ptr(b, (K, N), (b_row, b_col), (0, left), (BLOCK_K, BLOCK_N), (1, 0))
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        x = tl.load(at_a, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(at_b, boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(x, y, total)
        at_a = tl.advance(at_a, (0, BLOCK_K))
        at_b = tl.advance(at_b, (BLOCK_K, 0))
    n = left + tl.arange(0, BLOCK_N)
    added = tl.load(bias + n * bias_step, mask=n < N, other=0.0)
    total = tl.maximum(total + added[None, :].to(tl.float32), 0.0)
    at_c = tl.make_block_ptr(c, (M, N), (c_row, c_col), (top, left), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(at_c, total.to(c.dtype.element_ty), boundary_check=(0, 1))

@triton.jit
def finished_layer(
    a,
    b,
    bias,
    residual,
    c,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    bias_step,
    r_row,
    r_col,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    top, left = tl.program_id(1) * BLOCK_M, tl.program_id(0) * BLOCK_N
    at_a = tl.make_block_ptr(a, (M, K), (a_row, a_col), (top, 0), (BLOCK_M, BLOCK_K), (1, 0))
    at_b = tl.make_block_ptr(b, (K, N), (b_row, b_col), (0, left), (BLOCK_K, BLOCK_N), (1, 0))
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a_values = tl.load(at_a, boundary_check=(0, 1), padding_option="zero")
        b_values = tl.load(at_b, boundary_check=(0, 1), padding_option="zero")
        sums = tl.dot(a_values, b_values, sums)
        at_a = tl.advance(at_a, (0, BLOCK_K))
        at_b = tl.advance(at_b, (BLOCK_K, 0))
    m, n = top + tl.arange(0, BLOCK_M), left + tl.arange(0, BLOCK_N)
    inside = (m[:, None] < M) & (n[None, :] < N)
    added = tl.load(bias + n * bias_step, mask=n < N, other=0.0).to(tl.float32)
    r_at = residual + m[:, None] * r_row + n[None, :] * r_col
    kept = tl.load(r_at, mask=inside, other=0.0).to(tl.float32)
    x = sums + added[None, :]
    x = x * tl.sigmoid(x) + kept
    c_at = c + m[:, None] * c_row + n[None, :] * c_col
    tl.store(c_at, x.to(c.dtype.element_ty), mask=inside)

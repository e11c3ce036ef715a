@triton.jit
def rows_times(
    a,
    x,
    c,
    M,
    K,
    a_row,
    a_col,
    x_step,
    c_step,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    sums = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_at = a + (m[:, None] * a_row + k[None, :] * a_col)
        inside = (m[:, None] < M) & (k[None, :] < K)
        a_values = tl.load(a_at, mask=inside, other=0.0)
        x_values = tl.load(x + k * x_step, mask=k < K, other=0.0)
        sums += a_values.to(tl.float32) * x_values[None, :]
    totals = tl.sum(sums, 1)
    tl.store(c + m * c_step, totals.to(c.dtype.element_ty), mask=m < M)

@triton.jit
def summed(
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
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    k = tl.arange(0, BLOCK_K)
    a_at = a + m * a_row + k[None, :] * a_col
    b_at = b + k[:, None] * b_row + n * b_col
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a_values = tl.load(a_at, mask=(m < M) & (k[None, :] < K - start), other=0.0)
        b_values = tl.load(b_at, mask=(k[:, None] < K - start) & (n < N), other=0.0)
        acc = tl.dot(a_values, b_values, acc)
        a_at += BLOCK_K * a_col
        b_at += BLOCK_K * b_row
    tl.store(c + m * c_row + n * c_col, acc.to(c.dtype.element_ty), mask=(m < M) & (n < N))

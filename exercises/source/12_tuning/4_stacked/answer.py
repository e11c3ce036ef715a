@triton.jit
def stacked(
    a,
    b,
    c,
    Z,
    M,
    N,
    K,
    a_matrix,  # how far a matrix is from the next one
    a_row,
    a_col,
    b_row,
    b_col,
    c_matrix,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    row = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    z, m = (row // M).to(tl.int64), row % M
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_at = a + (z * a_matrix + m * a_row + k[None, :] * a_col)
        b_at = b + (k[:, None] * b_row + n * b_col)
        a_values = tl.load(a_at, mask=(z < Z) & (k[None, :] < K), other=0.0)
        b_values = tl.load(b_at, mask=(k[:, None] < K) & (n < N), other=0.0)
        acc = tl.dot(a_values, b_values, acc)
    c_at = c + (z * c_matrix + m * c_row + n * c_col)
    tl.store(c_at, acc.to(c.dtype.element_ty), mask=(z < Z) & (n < N))

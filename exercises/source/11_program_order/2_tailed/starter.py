@triton.jit
def tailed(
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
    m = (top + tl.arange(0, BLOCK_M)) % M
    n = (left + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a_at = a + (m[:, None] * a_row + k[None, :] * a_col)
    b_at = b + (k[:, None] * b_row + n[None, :] * b_col)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        # your code: roughly 2 lines
        a_values = tl.load(a_at)
        b_values = tl.load(b_at)
        acc = tl.dot(a_values, b_values, acc)
        a_at += BLOCK_K * a_col
        b_at += BLOCK_K * b_row
    m = top + tl.arange(0, BLOCK_M)
    n = left + tl.arange(0, BLOCK_N)
    c_at = c + (m[:, None] * c_row + n[None, :] * c_col)
    tl.store(c_at, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))

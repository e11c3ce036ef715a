@triton.jit
def kept(
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
    PROGRAMS: tl.constexpr,
):
    k = tl.arange(0, BLOCK_K)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    b_at = b + (k[:, None] * b_row + n * b_col)
    b_values = tl.load(b_at, mask=(k[:, None] < K) & (n < N), other=0.0)
    for tile in range(tl.program_id(1), tl.cdiv(M, BLOCK_M), PROGRAMS):
        m = tile * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
        a_at = a + (m * a_row + k[None, :] * a_col)
        a_values = tl.load(a_at, mask=(m < M) & (k[None, :] < K), other=0.0)
        values = tl.dot(a_values, b_values).to(c.dtype.element_ty)
        tl.store(c + (m * c_row + n * c_col), values, mask=(m < M) & (n < N))

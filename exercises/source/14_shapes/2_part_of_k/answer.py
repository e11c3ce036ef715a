@triton.jit
def part_of_k(
    a,
    b,
    parts,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    part,  # how far a matrix of parts is from the next one
    row,
    col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLITS: tl.constexpr,
):
    split = tl.program_id(2)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(split * BLOCK_K, K, SPLITS * BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_at = a + (m * a_row + k[None, :] * a_col)
        b_at = b + (k[:, None] * b_row + n * b_col)
        a_values = tl.load(a_at, mask=(m < M) & (k[None, :] < K), other=0.0)
        b_values = tl.load(b_at, mask=(k[:, None] < K) & (n < N), other=0.0)
        acc = tl.dot(a_values, b_values, acc, input_precision="ieee")
    at = parts + (split * part + m * row + n * col)
    tl.store(at, acc, mask=(m < M) & (n < N))

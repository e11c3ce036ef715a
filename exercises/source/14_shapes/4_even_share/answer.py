@triton.jit
def even_share(
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
    part,  # how far matrix 1 of the parts is from matrix 0
    row,
    col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PROGRAMS: tl.constexpr,
):
    across, steps = tl.cdiv(N, BLOCK_N), tl.cdiv(K, BLOCK_K)
    every = tl.cdiv(M, BLOCK_M) * across * steps
    begin = tl.program_id(0) * every // PROGRAMS
    end = (tl.program_id(0) + 1) * every // PROGRAMS
    for tile in range(begin // steps, tl.cdiv(end, steps)):
        low = max(begin - tile * steps, 0)
        high = min(end - tile * steps, steps)
        m = tile // across * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
        n = tile % across * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in range(low, high):
            k = step * BLOCK_K + tl.arange(0, BLOCK_K)
            a_at = a + (m * a_row + k[None, :] * a_col)
            b_at = b + (k[:, None] * b_row + n * b_col)
            a_values = tl.load(a_at, mask=(m < M) & (k[None, :] < K), other=0.0)
            b_values = tl.load(b_at, mask=(k[:, None] < K) & (n < N), other=0.0)
            acc = tl.dot(a_values, b_values, acc, input_precision="ieee")
        at = parts + (m * row + n * col)
        inside = (m < M) & (n < N)
        if low == 0:
            tl.store(at, acc, mask=inside)
            if high == steps:
                tl.store(at + part, tl.zeros_like(acc), mask=inside)
        else:
            tl.store(at + part, acc, mask=inside)

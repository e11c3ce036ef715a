@triton.jit
def finish(
    parts,
    bias,
    c,
    M,
    N,
    part,  # how far a matrix of parts is from the next one
    row,
    col,
    bias_col,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLITS: tl.constexpr,
):
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (m < M) & (n < N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for split in range(SPLITS):
        at = parts + (split * part + m * row + n * col)
        total += tl.load(at, mask=inside, other=0.0)
    total += tl.load(bias + n * bias_col, mask=n < N, other=0.0)
    values = tl.maximum(total, 0.0).to(c.dtype.element_ty)
    tl.store(c + (m * c_row + n * c_col), values, mask=inside)

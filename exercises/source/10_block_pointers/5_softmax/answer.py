@triton.jit
def softmax(
    a,
    c,
    M,
    N,
    a_row,
    a_col,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N)[None, :]
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    for left in range(0, N, BLOCK_N):
        inside = (rows < M) & (left + cols < N)
        at = a + rows * a_row + (left + cols) * a_col
        values = tl.load(at, mask=inside, other=float("-inf"))
        now = tl.maximum(top, tl.max(values, 1))
        total = total * tl.exp(top - now) + tl.sum(tl.exp(values - now[:, None]), 1)
        top = now
    for left in range(0, N, BLOCK_N):
        inside = (rows < M) & (left + cols < N)
        values = tl.load(a + rows * a_row + (left + cols) * a_col, mask=inside, other=0.0)
        share = tl.exp(values - top[:, None]) / total[:, None]
        tl.store(c + rows * c_row + (left + cols) * c_col, share, mask=inside)

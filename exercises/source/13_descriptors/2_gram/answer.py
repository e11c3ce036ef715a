@triton.jit
def gram(
    a,
    c,
    M,
    K,
    a_row,
    a_col,  # 1
    c_row,
    c_col,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    top, left = tl.program_id(1) * BLOCK, tl.program_id(0) * BLOCK
    if left <= top:
        tiles = tl.make_tensor_descriptor(a, (M, K), (a_row, 1), (BLOCK, BLOCK_K))
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, K, BLOCK_K):
            rows = tiles.load([top, k])
            columns = tiles.load([left, k]).T
            acc = tl.dot(rows, columns, acc)
        m = top + tl.arange(0, BLOCK)[:, None]
        n = left + tl.arange(0, BLOCK)[None, :]
        inside = (m < M) & (n < M)
        values = acc.to(c.dtype.element_ty)
        tl.store(c + (m * c_row + n * c_col), values, mask=inside)
        if left < top:
            tl.store(c + (n * c_row + m * c_col), values, mask=inside)

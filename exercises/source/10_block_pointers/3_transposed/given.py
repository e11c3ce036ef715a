# NBVAL_CHECK_OUTPUT
def multiply_transposed(kernel, a, b, block=16):
    """Return what a kernel stores for aᵀ · b, in tiles of block × block × block, and its trace."""
    (k, m), n = a.shape, b.shape[1]
    c = a.new_full((m, n), torch.nan)
    grid = (triton.cdiv(n, block), triton.cdiv(m, block))
    strides = (*a.stride(), *b.stride(), *c.stride())
    return c, trace_tiles(kernel, grid, a, b, c, m, n, k, *strides, block, block, block)


stored, b = Problem(24, 35, 40, "float16").inputs(kind="integers", device="cpu")
stored = stored.T.contiguous()  # A, as it lies in memory: 40 × 24, K × M
print((stored.double().T @ b.double())[-1, -8:].int().tolist())  # the end of C's last row

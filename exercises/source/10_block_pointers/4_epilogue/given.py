# NBVAL_CHECK_OUTPUT
def activate(kernel, a, b, bias, block=16):
    """Return what a kernel stores for relu(a · b + bias), and its trace."""
    (m, k), n = a.shape, b.shape[1]
    c = a.new_full((m, n), torch.nan)
    grid = (triton.cdiv(n, block), triton.cdiv(m, block))
    strides = (*a.stride(), *b.stride(), *bias.stride(), *c.stride())
    return c, trace_tiles(kernel, grid, a, b, bias, c, m, n, k, *strides, block, block, block)


bias = torch.arange(-17, 18, dtype=torch.float16)
a, b = Problem(20, 35, 40, "float16").inputs(kind="integers", device="cpu")
print((a.double() @ b.double() + bias).relu()[-1, -8:].int().tolist())

# NBVAL_CHECK_OUTPUT
def finish(kernel, a, b, bias, residual, block=16):
    """Return what a kernel stores for silu(a · b + bias) + residual, and its trace."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.full_like(residual, torch.nan)
    grid = (triton.cdiv(n, block), triton.cdiv(m, block))
    strides = (*a.stride(), *b.stride(), *bias.stride(), *residual.stride(), *c.stride())
    arrays = (a, b, bias, residual, c)
    return c, trace_tiles(kernel, grid, *arrays, m, n, k, *strides, block, block, block)


a, b = Problem(20, 35, 40, "float16").inputs(kind="integers", device="cpu")
bias = torch.arange(-17, 18, dtype=torch.float16)
residual = torch.arange(700, dtype=torch.float16).reshape(20, 35)
right = torch.nn.functional.silu(a.double() @ b.double() + bias) + residual
print(right[-1, -8:].round().int().tolist())

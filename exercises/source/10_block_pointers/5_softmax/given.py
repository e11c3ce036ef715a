# NBVAL_CHECK_OUTPUT
def by_rows(kernel, a, block_m=4, block_n=16):
    """Return what a kernel with a program for each `block_m` rows stores, and its trace."""
    c = torch.full(a.shape, torch.nan)
    strides = (*a.stride(), *c.stride())
    grid = (triton.cdiv(a.shape[0], block_m),)
    return c, trace_tiles(kernel, grid, a, c, *a.shape, *strides, block_m, block_n)


a = torch.arange(6 * 50).reshape(6, 50).float() % 37 * 10
print([f"{x:.4f}" for x in a.softmax(1)[-1, 4:12].tolist()])

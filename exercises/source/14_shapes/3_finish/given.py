def finished(kernel, parts, bias, block_m=16, block_n=32):
    """Return what a kernel makes of the parts, SPLITS × M × N, and the bias, N."""
    splits, m, n = parts.shape
    c = parts.new_full((m, n), torch.nan)
    grid = (triton.cdiv(n, block_n), triton.cdiv(m, block_m))
    strides = (*parts.stride(), *bias.stride(), *c.stride())
    walk = trace_tiles(kernel, grid, parts, bias, c, m, n, *strides, block_m, block_n, splits)
    return c, walk

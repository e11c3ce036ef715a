def in_parts(kernel, a, b, splits, block=16):
    """Return the parts that a kernel stores for a · b."""
    (m, k), n = a.shape, b.shape[1]
    parts = a.new_full((splits, m, n), torch.nan)
    grid = (triton.cdiv(n, block), triton.cdiv(m, block), splits)
    strides = (*a.stride(), *b.stride(), *parts.stride())
    trace_tiles(kernel, grid, a, b, parts, m, n, k, *strides, block, block, block, splits)
    return parts

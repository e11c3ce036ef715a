def in_a_batch(kernel, a, b, block=16):
    """Return the products of all matrices of a, Z × M × K, with b."""
    (z, m, k), n = a.shape, b.shape[1]
    c = a.new_full((z, m, n), torch.nan)
    grid = (triton.cdiv(n, block), triton.cdiv(z * m, block))
    strides = (*a.stride(), *b.stride(), *c.stride())
    walk = trace_tiles(kernel, grid, a, b, c, z, m, n, k, *strides, block, block, block)
    return c, walk

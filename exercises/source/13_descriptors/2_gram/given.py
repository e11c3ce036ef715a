def by_its_transpose(kernel, a, block=16):
    """Return a · aᵀ for a in rows that are padded to a multiple of 16 bytes."""
    m, k = a.shape
    padded = a.new_full((m, triton.cdiv(k, 8) * 8), 7)[:, :k]
    padded[:] = a
    c = a.new_full((m, m), torch.nan)
    tiles = triton.cdiv(m, block)
    strides = (*padded.stride(), *c.stride())
    walk = trace_tiles(kernel, (tiles, tiles), padded, c, m, k, *strides, block, block)
    return c, walk

def by_few_programs(kernel, a, b, programs, block=16):
    """Return a · b, with so many programs for each column of tiles."""
    (m, k), n = a.shape, b.shape[1]
    c = a.new_full((m, n), torch.nan)
    deep = max(16, triton.next_power_of_2(k))
    strides = (*a.stride(), *b.stride(), *c.stride())
    grid = (triton.cdiv(n, block), programs)
    walk = trace_tiles(kernel, grid, a, b, c, m, n, k, *strides, block, block, deep, programs)
    return c, walk

def in_two_parts(kernel, a, b, programs, block=16):
    """Return the two matrices that so many programs store for a · b, and what they did."""
    (m, k), n = a.shape, b.shape[1]
    parts = a.new_full((2, m, n), torch.nan)
    strides = (*a.stride(), *b.stride(), *parts.stride())
    sizes = (m, n, k, *strides, block, block, block, programs)
    walk = trace_tiles(kernel, (programs,), a, b, parts, *sizes)
    return parts, walk

def multiply(kernel, a, b, beyond, block=16):
    """Return a · b, where a and b are corners of matrices that hold `beyond` elsewhere."""
    (m, k), n = a.shape, b.shape[1]
    large = a.new_full((64, 64), beyond), b.new_full((64, 64), beyond)
    large[0][:m, :k], large[1][:k, :n] = a, b
    a, b, c = large[0][:m, :k], large[1][:k, :n], a.new_full((m, n), torch.nan)
    grid = (triton.cdiv(n, block), triton.cdiv(m, block))
    strides = (*a.stride(), *b.stride(), *c.stride())
    trace_tiles(kernel, grid, a, b, c, m, n, k, *strides, block, block, block)
    return c

def along_rows(kernel, a, x, block_m, block_k):
    """Return what a kernel stores for a · x, and its trace."""
    c = a.new_full((len(a),), torch.nan)
    strides = (*a.stride(), *x.stride(), *c.stride())
    grid = (triton.cdiv(len(a), block_m),)
    return c, trace_tiles(kernel, grid, a, x, c, *a.shape, *strides, block_m, block_k)


def sectors(walk, rows, columns, wide=16):
    """Return how many sectors of A the loads take: `wide` elements of a row, which are 32 bytes."""
    count = 0
    for load in walk.select(op="load", array="a"):
        down = min(load.rows[1], rows) - load.rows[0]
        count += down * (-(-min(load.cols[1], columns) // wide) - load.cols[0] // wide)
    return count

def walked(kernel, tiles_m, tiles_n, group_m, block=16):
    """Return the number of the program that stores each tile, from the kernel's trace."""
    a, b = Problem(tiles_m * block - 3, tiles_n * block - 5, 20, "float16").inputs(device="cpu")
    (m, k), n = a.shape, b.shape[1]
    c = a.new_full((m, n), torch.nan)
    strides = (*a.stride(), *b.stride(), *c.stride())
    grid = (tiles_m * tiles_n,)
    sizes = m, n, k, *strides, block, block, block, group_m
    numbers = {}
    for event in trace_tiles(kernel, grid, a, b, c, *sizes).select(op="store"):
        if event.elements:
            place = event.rows[0] // block, event.cols[0] // block
            numbers.setdefault(place, []).append(event.program[0])
    return numbers

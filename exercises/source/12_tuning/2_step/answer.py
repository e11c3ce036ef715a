def step(rows, columns, depth):
    arithmetic = 2 * rows * columns * depth / FLOPS
    written = (rows + columns) * depth
    read = rows * depth + rows // WGMMA_ROWS * columns * depth
    shared = (written + read) * BYTES / BANDWIDTH
    if arithmetic == shared:
        return arithmetic, shared, "both"
    return arithmetic, shared, "arithmetic" if arithmetic > shared else "shared memory"

# status: WRONG
# words: it is B that is read again; hint 2
# exercise 11.2: which roof
def step(rows, columns, depth):
    arithmetic = 2 * rows * columns * depth / FLOPS
    written = (rows + columns) * depth
    read = columns * depth + columns // WGMMA_ROWS * rows * depth
    shared = (written + read) * BYTES / BANDWIDTH
    if arithmetic == shared:
        return arithmetic, shared, "both"
    return arithmetic, shared, "arithmetic" if arithmetic > shared else "shared memory"

# status: WRONG
# words: B read once; hint 2
# exercise 11.2: which roof
def step(rows, columns, depth):
    arithmetic = 2 * rows * columns * depth / FLOPS
    written = (rows + columns) * depth
    read = (rows + columns) * depth
    shared = (written + read) * BYTES / BANDWIDTH
    if arithmetic == shared:
        return arithmetic, shared, "both"
    return arithmetic, shared, "arithmetic" if arithmetic > shared else "shared memory"

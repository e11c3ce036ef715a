# status: PASS
# words: 
# exercise 11.2: which roof
def step(rows, columns, depth):
    of_a, of_b = BYTES * rows * depth, BYTES * columns * depth
    shared = (2 * of_a + of_b + rows / WGMMA_ROWS * of_b) / BANDWIDTH
    arithmetic = 2 * rows * columns * depth / FLOPS
    longer = "both"
    if shared > arithmetic:
        longer = "shared memory"
    elif shared < arithmetic:
        longer = "arithmetic"
    return [arithmetic, shared, longer]

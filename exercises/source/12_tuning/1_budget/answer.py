def budget(block_m, block_n, block_k, warps, stages):
    shared = (block_m * block_k + block_k * block_n) * BYTES * stages
    threads = WARP * warps
    sums = block_m * block_n / threads
    fits = shared <= SHARED and sums < min(MOST, REGISTERS / threads)
    return shared, sums, fits

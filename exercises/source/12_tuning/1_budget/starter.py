def budget(block_m, block_n, block_k, warps, stages):
    # your code: roughly 5 lines
    return 0, 0, True

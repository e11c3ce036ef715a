# status: PASS
# words: 
# exercise 11.1: the budget
def budget(block_m, block_n, block_k, warps, stages):
    of_a, of_b = block_m * block_k, block_k * block_n
    stage = (of_a + of_b) * BYTES
    sums = block_m * block_n / WARP / warps
    if stages * stage > SHARED:
        return stages * stage, sums, False
    return stages * stage, sums, sums < MOST and sums * WARP * warps < REGISTERS

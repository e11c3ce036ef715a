# status: FORBIDDEN
# words: tiled_matmul
# exercise 11.1: the budget
def budget(block_m, block_n, block_k, warps, stages):
    return tiled_matmul.machine.device.shared_limit((9, 0)), 0, True

FLOPS = 4096  # of the tensor cores of a multiprocessor, in a clock
BANDWIDTH = 128  # bytes of shared memory in a clock
WGMMA_ROWS = 64  # of A, that one wgmma multiplies; rows is a multiple of it

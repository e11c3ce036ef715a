THREADS = 8  # of a block, along x

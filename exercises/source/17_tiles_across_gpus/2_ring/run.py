# NBVAL_CHECK_OUTPUT
for rank in range(4):
    print(f"rank {rank}: {ring(rank, 4)}")

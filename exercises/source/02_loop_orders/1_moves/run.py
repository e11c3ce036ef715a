# NBVAL_CHECK_OUTPUT
for order in ("ijk", "ikj", "jik", "jki", "kij", "kji"):
    print(order, *moves(order, 5, 7, 3))

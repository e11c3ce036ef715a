# NBVAL_CHECK_OUTPUT
for tiles in ((16, 16, 1, 1), (64, 64, 8, 1), (128, 128, 8, 8), (16, 32, 4, 8)):
    of_global, of_shared, lower = roofs(*tiles)
    print(f"{tiles}: {of_global:.1f} and {of_shared:.1f}, under {lower}")

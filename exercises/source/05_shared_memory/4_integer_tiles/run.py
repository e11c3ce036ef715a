# NBVAL_CHECK_OUTPUT
a = np.array([[4097, 1]], np.int32)
b = np.array([[4097], [2]], np.int32)
c = np.zeros((1, 1), np.int32)
integer_tiles[1, (TILE, TILE)](a, b, c)
print(f"{c[0, 0]:,} should be {4097 * 4097 + 2:,}")

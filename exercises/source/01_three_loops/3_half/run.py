# NBVAL_CHECK_OUTPUT
a = np.array([[1, 2, 0], [0, 1, 1], [2, 0, 1], [1, 1, 1]], np.float32)
c = np.full((4, 4), -99, np.float32)  # old numbers
half(a, c)
print(c.astype(int))

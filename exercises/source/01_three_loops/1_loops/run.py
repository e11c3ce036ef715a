# NBVAL_CHECK_OUTPUT
a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
b = np.array([[1, 0, 2, 0], [0, 1, 0, 2], [1, 1, 1, 1]], np.float32)
c = np.full((2, 4), -99, np.float32)  # old numbers
loops(a, b, c)
print(c.astype(int))

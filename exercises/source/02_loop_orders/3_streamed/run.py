# NBVAL_CHECK_OUTPUT
a = np.array([[1, 2, 0], [0, 1, 1]], np.float32)
b = np.array([[1, 0, 2, 1], [3, 1, 0, 1]], np.float32)
c = np.full((3, 4), -99, np.float32)  # old numbers
streamed(a, b, c)
print(c.astype(int))

# NBVAL_CHECK_OUTPUT
a = np.arange(30, dtype=np.float32).reshape(5, 6)
b = np.ones((6, 7), np.float32)
c = np.full((5, 7), -99, np.float32)
snake(a, b, c)
print(c.astype(int))  # each row holds the sum of a row of A

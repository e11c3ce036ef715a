# NBVAL_CHECK_OUTPUT
c = np.full((5, 10), -1, np.float32)
guarded[GRID, BLOCK](a, b, c)
print(f"{(c == a @ b).sum()} of {c.size} elements are right")

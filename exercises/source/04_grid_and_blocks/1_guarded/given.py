BLOCK = (8, 4)  # along x and y
a = np.arange(35, dtype=np.float32).reshape(5, 7)
b = np.arange(70, dtype=np.float32).reshape(7, 10) % 4 + 1
GRID = (2, 2)  # 10 columns in eights, 5 rows in fours

BOX = (4, 2, 3)  # a block's threads along x, y and z
stack_a = np.arange(60, dtype=np.float32).reshape(5, 3, 4)
stack_b = np.arange(120, dtype=np.float32).reshape(5, 4, 6) % 7

# NBVAL_CHECK_OUTPUT
grad_a, grad_b = gradients([[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1, 0], [0, 0]])
print("of a:", grad_a)
print("of b:", grad_b)

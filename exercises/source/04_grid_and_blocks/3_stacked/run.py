# NBVAL_CHECK_OUTPUT
c = np.full((5, 3, 6), -1, np.float32)
stacked[(2, 2, 2), BOX](stack_a, stack_b, c)
print(f"{(c == stack_a @ stack_b).sum()} of {c.size} elements are right")

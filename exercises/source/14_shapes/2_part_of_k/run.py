# NBVAL_CHECK_OUTPUT
a, b = Problem(20, 35, 130).inputs(kind="integers", device="cpu")
parts = in_parts(part_of_k, a, b, splits=4)
print("the parts add up to A · B:", bool((parts.sum(dim=0) == a @ b).all()))

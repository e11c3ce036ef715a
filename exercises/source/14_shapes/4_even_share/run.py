# NBVAL_CHECK_OUTPUT
a, b = Problem(20, 35, 90).inputs(kind="integers", device="cpu")
parts, walk = in_two_parts(even_share, a, b, programs=5)
print("the parts add up to A · B:", bool((parts.sum(dim=0) == a @ b).all()))
for program in range(5):
    done = len(walk.select(op="dot", program=program))
    print(f"program {program} did {done} of 36 steps")

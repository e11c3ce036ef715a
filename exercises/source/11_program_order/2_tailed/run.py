# NBVAL_CHECK_OUTPUT
a, b = Problem(20, 35, 40, "float16").inputs(kind="integers", device="cpu")
for beyond in (0, 7):
    wrong = diagnose(multiply(tailed, a, b, beyond), a, b).wrong
    print(f"beyond the edges {beyond}: {wrong} of {20 * 35} elements are wrong")

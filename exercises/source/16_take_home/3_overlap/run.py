# NBVAL_CHECK_OUTPUT
whole = [4096, [8, 16], [16, 1], 2]
for name, other in {
    "itself": whole,
    "its transpose": [4096, [16, 8], [1, 16], 2],
    "its right half": [4112, [8, 8], [16, 1], 2],
    "what follows": [4352, [8, 16], [16, 1], 2],
}.items():
    print(f"{name}: {shared_bytes(whole, other)}")

# NBVAL_CHECK_OUTPUT
c, walk = multiply(summed, a, b)
print(f"whole numbers from -4 to 4: {diagnose(c, a, b).wrong} of {c.numel()} elements wrong")

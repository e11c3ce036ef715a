# NBVAL_CHECK_OUTPUT
TPB = 3  # threads per block, along each axis
a = np.arange(81, dtype=np.float32).reshape(9, 9)
b = 2 * a
np.set_printoptions(nanstr="·")  # NaN: no number
print(a @ b)  # what C should hold

# NBVAL_CHECK_OUTPUT
late, there = [False] * 8, [True] * 8
print("always phase 0, late copies:   ", first_fault("full", 3, [0] * 8, late))
print("always phase 0, early copies:  ", first_fault("full", 3, [0] * 8, there))
print("always phase 1, for an empty:  ", first_fault("empty", 3, [1] * 8, there))
print("phases in turn, two buffers:   ", first_fault("full", 2, [0, 1] * 4, late))

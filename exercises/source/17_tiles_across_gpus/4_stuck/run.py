# NBVAL_CHECK_OUTPUT
print(stuck([["gather", "reduce"], ["gather", "reduce"]]))
print(stuck([["gather", "reduce"], ["gather"], ["gather", "reduce"]]))
print(stuck([["gather", "reduce"], ["reduce", "gather"]]))

# NBVAL_CHECK_OUTPUT
told = [
    ["send", "a"],
    ["receive", "b"],
    ["read", "a"],
    ["wait", "a"],
    ["wait", "b"],
    ["read", "b"],
]
print(too_early(told), too_early(told[:4] + told[5:]), too_early(told[:2] + [["write", "a"]]))

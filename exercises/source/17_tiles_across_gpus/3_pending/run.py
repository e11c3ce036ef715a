# NBVAL_CHECK_OUTPUT
told = [
    ["send", "a"],
    ["receive", "b"],
    ["read", "a"],
    ["wait", "a"],
    ["wait", "b"],
    ["read", "b"],
]
cases = told, told[:4] + told[5:], told[:2] + [["write", "a"]]
print(*map(too_early, cases))

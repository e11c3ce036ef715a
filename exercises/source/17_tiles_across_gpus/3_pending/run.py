# NBVAL_CHECK_OUTPUT
ring = [["send", "a"], ["receive", "b"], ["read", "a"], ["wait", "a"], ["wait", "b"], ["read", "b"]]
print(too_early(ring), too_early(ring[:4] + ring[5:]), too_early(ring[:2] + [["write", "a"]]))

first_fault([("copy", 0, 0), ("commit",), ("wait", 0), ("multiply", 0, 0)])

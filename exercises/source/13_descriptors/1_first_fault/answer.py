def first_fault(side, stages, phases, early):
    for i, phase in enumerate(phases):
        needed = i // stages % 2
        if side == "empty":
            needed = 1 - needed
        if phase != needed:
            return i, "forever" if early[i] else "too soon"
    return len(phases), "right"

def first_fault(side, stages, phases, early):
    # your code: roughly 8 lines
    return len(phases), "right"

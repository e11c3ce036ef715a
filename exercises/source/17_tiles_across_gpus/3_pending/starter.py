def too_early(calls):
    # your code: roughly 12 lines
    return -1

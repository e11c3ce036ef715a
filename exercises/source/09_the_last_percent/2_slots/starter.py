def largest_cost(counted):
    # your code: roughly 15 lines
    return 0.0, 0.0, 0.0, "instructions", 1.0

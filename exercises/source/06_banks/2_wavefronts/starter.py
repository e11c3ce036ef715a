def wavefronts(stride, size):
    # your code: roughly 5 lines
    pass

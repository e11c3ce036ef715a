def row_length(columns, patches, size):
    # your code: roughly 10 lines
    return columns + 1

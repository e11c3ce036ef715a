def row_length(columns, patches, size):
    lanes = 128 // size  # that are served at a time: so many elements fill all banks once
    for length in range(columns, columns + lanes):  # then the banks repeat
        places = [
            {(t // wide * length + t % wide) % lanes for t in range(lanes)} for _, wide in patches
        ]
        if all(len(different) == lanes for different in places):
            return length
    return 0

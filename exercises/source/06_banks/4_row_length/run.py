# NBVAL_CHECK_OUTPUT
row, column = (1, 32), (32, 1)
for columns, patches, size in (
    (32, [row, column], 4),
    (32, [row, column], 8),
    (8, [(4, 8), column], 16),  # 32 floats in eight pieces of 16 bytes
    (16, [(2, 16), (16, 2)], 4),  # a 16×16 block stores two rows and reads two columns
):
    print(columns, patches, size, row_length(columns, patches, size))

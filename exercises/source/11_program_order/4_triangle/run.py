# NBVAL_CHECK_OUTPUT
for number, tile in enumerate(triangle(lower, a).nan_to_num(-1).int()):
    print(f"tile number {number} begins with", tile[0, :4])

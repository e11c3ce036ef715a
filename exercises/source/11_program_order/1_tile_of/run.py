# NBVAL_CHECK_OUTPUT
numbers = {}  # of the programs that compute each tile
for program in range(5 * 3):
    numbers.setdefault(tile_of(program, 5, 3, group_m=2), []).append(program)
for row in range(5):
    print(*(str(numbers.get((row, column), "none")).rjust(8) for column in range(3)))

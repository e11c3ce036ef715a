# NBVAL_CHECK_OUTPUT
numbers = walked(snake, 5, 4, group_m=2)
for row in range(5):
    print(*(str(numbers.get((row, column), "none")).rjust(8) for column in range(4)))

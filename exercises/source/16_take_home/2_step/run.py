# NBVAL_CHECK_OUTPUT
for frozen in ([False, False, False], [True, True, False], [False, True, True]):
    print(frozen, step_flops(32, [64, 256, 256, 10], frozen))

@triton.jit
def rows_times(
    a,
    x,
    c,
    M,
    K,
    a_row,
    a_col,
    x_step,
    c_step,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # your code: roughly 11 lines
    pass

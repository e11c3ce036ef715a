@triton.jit
def finished_layer(
    a,
    b,
    bias,
    residual,
    c,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    bias_step,
    r_row,
    r_col,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # your code: roughly 18 lines
    pass

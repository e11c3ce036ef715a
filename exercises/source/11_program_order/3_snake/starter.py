@triton.jit
def snake(
    a,
    b,
    c,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    # your code: roughly 25 lines
    pass

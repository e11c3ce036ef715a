@triton.jit
def softmax(
    a,
    c,
    M,
    N,
    a_row,
    a_col,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # your code: roughly 20 lines
    pass

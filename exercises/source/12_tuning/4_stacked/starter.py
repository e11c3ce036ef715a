@triton.jit
def stacked(
    a,
    b,
    c,
    Z,
    M,
    N,
    K,
    a_matrix,  # how far a matrix is from the next one
    a_row,
    a_col,
    b_row,
    b_col,
    c_matrix,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # your code: roughly 15 lines
    pass

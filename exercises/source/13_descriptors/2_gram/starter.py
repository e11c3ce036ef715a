@triton.jit
def gram(
    a,
    c,
    M,
    K,
    a_row,
    a_col,  # 1
    c_row,
    c_col,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    # your code: roughly 17 lines
    pass

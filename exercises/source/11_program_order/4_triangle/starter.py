@triton.jit
def lower(
    a,
    c,
    M,
    K,
    a_row,
    a_col,
    c_tile,
    c_row,
    c_col,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FIRST: tl.constexpr,
):
    # your code: roughly 25 lines
    pass

@triton.jit
def even_share(
    a,
    b,
    parts,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    part,  # how far matrix 1 of the parts is from matrix 0
    row,
    col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PROGRAMS: tl.constexpr,
):
    # your code: roughly 25 lines
    pass

@triton.jit
def part_of_k(
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
    part,  # how far a matrix of parts is from the next one
    row,
    col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLITS: tl.constexpr,
):
    # your code: roughly 16 lines
    pass
